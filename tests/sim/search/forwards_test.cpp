// Planners on a run of forwards alone: what they predict is what runs, and planners of training refuse.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "sim/experiment/run.hpp"
#include "sim/search/plan_table.hpp"

namespace stagecraft::forwards_test {
namespace {

using Strings = std::vector<std::string>;

/// Devices of two types without a memory limit, with messages of this rate.
std::string cluster(const std::string& bandwidth) {
  return "cluster={generator: star, groups: [{name: a, count: 2, type: slow, link: wire}, {name: b, count: 2, type: "
         "fast, link: wire}], types: {slow: {peak: 1 TFLOP/s, memory: 80 GiB, memory_bandwidth: 1000 TB/s}, fast: "
         "{peak: 3 TFLOP/s, memory: 80 GiB, memory_bandwidth: 1000 TB/s}}, links: {wire: {bandwidth: " +
         bandwidth + ", latency: 0 s}}}";
}

/// Eight layers of unequal work, whose outputs have `output` bytes.
std::string layers(const std::string& output) {
  std::string text = "model={builder: listed, layers: [";
  const int gflop[] = {3, 1, 4, 1, 5, 9, 2, 6};
  for (int l = 0; l < 8; ++l)
    text += fmt::format(
        "{}{{name: l{}, inputs: [{}], forward: {} GFLOP, input_gradient: {} GFLOP, weight_gradient: {} GFLOP, "
        "parameters: 1000, output: {}, stash: 1 MB}}",
        l > 0 ? ", " : "", l, l > 0 ? fmt::format("l{}", l - 1) : "", gflop[l], gflop[l], gflop[l], output);
  return text + "]}";
}

PlanTable planned(const std::string& file, Strings sets) {
  return compare_plans(load_experiment(file, std::move(sets)), {});
}

/// How far the simulated time of a micro-batch is from the predicted one, by planner.
std::map<std::string, double> errors_of(const PlanTable& table) {
  std::map<std::string, double> errors;
  for (const PlanRow& r : table.rows)
    if (r.ran() && r.predicted.value > 0) errors[r.planner] = std::abs(r.each / r.predicted - 1);
  return errors;
}

const std::string kQuickstart = "scenarios/examples/quickstart.yaml";

}  // namespace

TEST_CASE("with free messages every planner predicts the period of forwards alone exactly") {
  for (const int micro_batches : {8, 32})
    for (const char* size : {"1", "4"}) {
      const PlanTable table =
          planned(kQuickstart, {layers("1 B"), cluster("1000000 TB/s"), "run.schedule=inference",
                                fmt::format("run.micro_batches={}", micro_batches),
                                fmt::format("plan={{planner: balanced, stages: 4, micro_batch_size: {}}}", size)});
      std::map<std::string, double> errors = errors_of(table);
      CHECK(errors.size() == 7);
      for (const auto& [name, error] : errors) {
        const std::string planner = name;
        CAPTURE(planner);
        CAPTURE(size);
        CHECK(error < 1e-6);
      }
      for (const PlanRow& r : table.rows)
        if (r.ran() && r.model_limit.value > 0) CHECK(r.model_limit.value <= r.predicted.value * (1 + 1e-9));
    }
}

TEST_CASE("a message of forwards alone goes one way") {
  // 3 GFLOP of the first layer on the slow type take 3 ms. An output of 4 MB at 1 GB/s takes 4 ms, and no message
  // comes back.
  const PlanTable table = planned(kQuickstart, {layers("4 MB"), cluster("1 GB/s"), "run.schedule=inference",
                                                "run.micro_batches=32", "plan={planner: balanced, stages: 4}"});
  const std::map<std::string, double> errors = errors_of(table);
  for (const char* planner : {"pipedream", "brute", "spp", "graphpipe", "graph-exact", "edgepipe"}) {
    CAPTURE(planner);
    REQUIRE(errors.contains(planner));
    CHECK(errors.at(planner) < 1e-6);
  }
}

TEST_CASE("promises that simulation does not keep are marked") {
  // Six unlike boxes, two behind slow links with latency, and a device sends one message after another.
  const PlanTable table = planned("scenarios/guide/edge/boxes.yaml", {"model.layers=3", "run.micro_batches=64"});
  CHECK(errors_of(table).at("pipedream") > 0.5);
  const std::string text = to_text(table);
  CHECK(text.find("! +") != std::string::npos);
  CHECK(text.find("more than 10 % longer than the planner's own model says") != std::string::npos);
}

TEST_CASE("planners of training refuse forwards alone and say why, in a table and in a run") {
  const std::string file = "scenarios/examples/edge-inference.yaml";
  const std::map<std::string, std::string> reasons{
      {"layerpipe",
       "the planner 'layerpipe' places the gradients of each layer as tasks of their own, and the schedule runs "
       "forwards alone"},
      {"piper",
       "the planner 'piper' weighs gradients, stashes and recomputation, and the schedule runs forwards alone"},
      {"2bw",
       "the planner '2bw' plans training with two versions of the weights, and the schedule runs forwards alone"}};
  for (const PlanRow& r : planned(file, {}).rows) {
    CAPTURE(r.planner);
    CHECK(r.ran() == !reasons.contains(r.planner));
    if (r.ran())
      CHECK(r.schedule == "inference");
    else
      CHECK(r.why_not == reasons.at(r.planner));
  }
  for (const auto& [planner, reason] : reasons) {
    const Experiment experiment = load_experiment(file, {fmt::format("plan={{planner: {}}}", planner)});
    CHECK_THROWS_WITH_AS(plan_experiment(experiment), doctest::Contains(reason.c_str()), InputError);
  }
}

TEST_CASE("the predictions for inference on edge devices are as close as those for training on the same devices") {
  const std::string file = "scenarios/examples/edge-inference.yaml";
  const std::map<std::string, double> inference = errors_of(planned(file, {})),
                                      training = errors_of(planned(file, {"run.schedule=1f1b"}));
  CHECK(inference.size() == 7);
  for (const auto& [planner, error] : inference) {
    MESSAGE(planner << ": " << 100 * error << " % for inference");
    if (training.contains(planner)) CHECK(error <= training.at(planner) + 1e-9);
  }
}

TEST_CASE("a planner of forwards predicts nothing of a training run, and says that it is a heuristic there") {
  const PlanTable table = planned("scenarios/examples/edge-inference.yaml", {"run.schedule=1f1b"});
  const auto row =
      std::find_if(table.rows.begin(), table.rows.end(), [](const PlanRow& r) { return r.planner == "edgepipe"; });
  REQUIRE(row != table.rows.end());
  REQUIRE(row->ran());
  CHECK(row->predicted.value == 0);
  CHECK(row->heuristic == "the stages are best for forwards alone");
}

}  // namespace stagecraft::forwards_test
