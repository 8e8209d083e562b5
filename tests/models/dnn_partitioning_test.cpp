#include <doctest/doctest.h>
#include <fmt/core.h>

#include "models/dnn_partitioning.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::dnn_partitioning_test {
namespace {

std::string node(int id, double milliseconds, const std::string& more = {}) {
  return fmt::format(R"({{"id": {}, "name": "n{}", "supportedOnFpga": 1, "cpuLatency": 0, "fpgaLatency": {}{}}})", id,
                     id, milliseconds, more);
}

std::string input(const std::string& nodes, const std::string& edges) {
  return R"({"maxSizePerFPGA": 1000, "maxFPGAs": 3, "maxCPUs": 1, "nodes": [)" + nodes + R"(], "edges": [)" + edges +
         "]}";
}

std::string edge(int from, int to, double cost) {
  return fmt::format(R"({{"sourceId": {}, "destId": {}, "cost": {}}})", from, to, cost);
}

/// Two forward nodes and their backward nodes; 2 ms for the tensor between them, 3 ms for its gradient.
std::string training(bool reversed) {
  return input(node(1, 8, R"(, "isBackwardNode": 0, "colorClass": 7, "size": 160)") + ", " +
                   node(2, 4, R"(, "isBackwardNode": 0, "colorClass": 9, "size": 0)") + ", " +
                   node(3, 10, R"(, "isBackwardNode": 1, "colorClass": 7, "size": 160)") + ", " +
                   node(4, 6, R"(, "isBackwardNode": 1, "colorClass": 9, "size": 0)"),
               edge(1, 2, 2) + ", " + edge(2, 4, 1) + ", " + (reversed ? edge(4, 3, 3) : edge(3, 4, 3)));
}

std::string problem_of(const std::string& text) {
  return test::input_error_of([&] { read_dnn_partitioning(text, "a.json"); });
}

}  // namespace

TEST_CASE("dnn-partitioning: a layer has the forward and the backward of its color class") {
  for (const bool reversed : {false, true}) {
    CAPTURE(reversed);
    const DnnPartitioning read = read_dnn_partitioning(training(reversed), "a.json");
    CHECK(read.devices == 3);
    CHECK(read.memory.value == 1000);
    CHECK(read.trains);
    CHECK(read.warnings.empty());
    REQUIRE(read.model.layers.size() == 2);
    const Layer &first = read.model.layers[LayerId{0}], &second = read.model.layers[LayerId{1}];
    CHECK(first.name == "n1");
    CHECK(first.times->forward.value == 0.008);
    CHECK(first.times->input_gradient.value == 0.005);
    CHECK(first.times->weight_gradient.value == 0.005);
    CHECK(first.parameters == 20);  // 320 bytes of weights, gradients and optimizer.
    CHECK(first.output.value == doctest::Approx(0.003 * kHostBandwidth));  // The gradient costs more.
    CHECK(second.inputs == std::vector<LayerId>{LayerId{0}});
    CHECK(second.times->input_gradient.value == 0.006);
    CHECK(second.parameters == 0);
  }
}

TEST_CASE("dnn-partitioning: without backward nodes it is inference; nodes that wait for each other are one layer") {
  // Nodes 1 and 3 share a device, and node 2 lies between them; node 4 is alone on another branch.
  const DnnPartitioning read =
      read_dnn_partitioning(input(node(1, 1, R"(, "colorClass": 5, "size": 4)") + ", " + node(2, 2, R"(, "size": 8)") +
                                      ", " + node(3, 3, R"(, "colorClass": 5, "size": 4)") + ", " + node(4, 4),
                                  edge(1, 2, 0) + ", " + edge(2, 3, 0) + ", " + edge(1, 4, 1)),
                            "a.json");
  CHECK_FALSE(read.trains);
  REQUIRE(read.model.layers.size() == 2);
  CHECK(read.model.layers[LayerId{0}].times->forward.value == doctest::Approx(0.006));
  CHECK(read.model.layers[LayerId{0}].parameters == 4);  // 16 bytes of weights.
  CHECK(read.model.layers[LayerId{1}].inputs == std::vector<LayerId>{LayerId{0}});
  CHECK(dnn_partitioning_scenario(read).find("schedule: inference") != std::string::npos);
}

TEST_CASE("dnn-partitioning: a backward node without a forward node is a layer, in the direction of the forward") {
  const DnnPartitioning read = read_dnn_partitioning(
      input(node(1, 1, R"(, "isBackwardNode": 0, "colorClass": 1)") + ", " +
                node(2, 1, R"(, "isBackwardNode": 0, "colorClass": 2)") + ", " +
                node(3, 1, R"(, "isBackwardNode": 1, "colorClass": 2)") + ", " +
                node(4, 5, R"(, "isBackwardNode": 1)") + ", " + node(5, 1, R"(, "isBackwardNode": 1, "colorClass": 1)"),
            edge(1, 2, 1) + ", " + edge(3, 5, 1) + ", " + edge(3, 4, 1) + ", " + edge(4, 5, 1)),
      "a.json");
  REQUIRE(read.model.layers.size() == 3);
  const Layer& alone = read.model.layers[LayerId{1}];
  CHECK(alone.name == "n4");
  CHECK(alone.times->forward.value == 0);
  CHECK(alone.times->input_gradient.value == 0.005);
  CHECK(alone.inputs == std::vector<LayerId>{LayerId{0}});
}

TEST_CASE("dnn-partitioning: costs that look like seconds are doubted; wrong inputs are refused at their place") {
  const std::string two = node(1, 1) + ", " + node(2, 1);
  const DnnPartitioning slow = read_dnn_partitioning(
      input(two, R"({"sourceId": 1, "destId": 2, "cost": 0.001953125, "size": 4194304})"), "a.json");
  REQUIRE(slow.warnings.size() == 1);
  CHECK(slow.warnings.front().find("are the costs seconds?") != std::string::npos);
  CHECK(
      read_dnn_partitioning(input(two, R"({"sourceId": 1, "destId": 2, "cost": 1.953125, "size": 4194304})"), "a.json")
          .warnings.empty());
  CHECK(problem_of(input(two, edge(1, 3, 0))).find("there is no node 3") != std::string::npos);
  CHECK(problem_of(input(node(1, 1) + ", " + node(1, 1), "")).find("there are two nodes 1") != std::string::npos);
  CHECK(problem_of(input("", "")).find("there are no nodes") != std::string::npos);
  CHECK(problem_of(input(node(1, -1), "")).find("fpgaLatency") != std::string::npos);
  CHECK(
      problem_of(
          R"({"maxSizePerFPGA": 1, "maxFPGAs": 1, "nodes": [{"id": 1, "supportedOnFpga": 0, "fpgaLatency": 1}], "edges": []})")
          .find("node 1 runs on a CPU only") != std::string::npos);
}

}  // namespace stagecraft::dnn_partitioning_test
