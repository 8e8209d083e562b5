// The input of dnn-partitioning for BERT, and the loads that its planners found.

#include <doctest/doctest.h>

#include <map>

#include "models/dnn_partitioning.hpp"
#include "tests/reference/schedules.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/planning.hpp"

namespace stagecraft::dnn_partitioning_reference_test {
namespace {

/// The restated input in the format of dnn-partitioning.
std::string input_text() {
  const test::ParsedJson given = test::reference_json("dnn_partitioning_input.json");
  test::ParsedJson input = {{"maxSizePerFPGA", given["limits"]["memory"]}, {"maxFPGAs", given["limits"]["devices"]}};
  std::map<int, std::array<int, 2>> ids;
  for (const test::ParsedJson& layer : given["layers"])
    for (const int backward : {0, 1}) {
      const int at = 1 + 3 * backward;
      ids[layer[0]][backward] = layer[at];
      input["nodes"].push_back({{"id", layer[at]},
                                {"supportedOnFpga", 1},
                                {"fpgaLatency", layer[at + 1]},
                                {"size", layer[at + 2]},
                                {"isBackwardNode", backward},
                                {"colorClass", layer[0]}});
    }
  for (const test::ParsedJson& edge : given["edges"])
    for (const int backward : {0, 1}) {
      const int at = 2 + 2 * backward;
      input["edges"].push_back({{"sourceId", ids[edge[0]][backward]},
                                {"destId", ids[edge[1]][backward]},
                                {"cost", edge[at]},
                                {"size", edge[at + 1]}});
    }
  return input.dump();
}

/// Load of the busiest accelerator by a method, in milliseconds.
double load_by(const std::string& method) {
  for (const test::ReferenceRow& row : test::reference_rows("dnn_partitioning_runs.csv"))
    if (row.text("method") == method) return row.number("load");
  throw InternalError("no run of " + method);
}

}  // namespace

TEST_CASE("dnn-partitioning: BERT with 24 layers is divided as well as its dynamic program divides it") {
  const DnnPartitioning read = read_dnn_partitioning(input_text(), "bert.json");
  CHECK(read.trains);
  CHECK(read.model.layers.size() == 32);
  REQUIRE(read.warnings.size() == 1);  // Its costs are seconds.
  const auto milliseconds = [&](int devices, const std::string& options, int micro_batches) {
    const Cluster cluster = test::star(devices, kHostBandwidth / 2, 0);
    return 1e3 * test::planned("graph-exact", read.model, cluster, options, micro_batches).predicted.value;
  };
  CHECK(milliseconds(1, "{}", 1) == doctest::Approx(load_by("oneFpga")).epsilon(1e-6));
  // Their load of an inner accelerator has four transfers besides, two in and two out. Ours go on at the same time.
  constexpr double kTransfer = 0.001953125;
  const double load = milliseconds(read.devices, "{}", 1'000'000);
  CHECK(load == doctest::Approx(load_by("dp") - 4 * kTransfer).epsilon(1e-5));
  CHECK(load < load_by("expert"));
  // The latency of a sample: four accelerators of 1 GiB are needed, and each boundary is crossed forward and back, each
  // time into the memory of the host and out.
  CHECK(milliseconds(read.devices, "{memory: 1 GiB}", 1) ==
        doctest::Approx(load_by("oneFpga") + 3 * 4 * kTransfer).epsilon(1e-6));
}

}  // namespace stagecraft::dnn_partitioning_reference_test
