// Tasks of layers on devices, compared with figures by hand and with stages of whole layers.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/plan/stage_costs.hpp"
#include "sim/planners/shared/planner.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/planning.hpp"

namespace stagecraft::layerpipe_test {
namespace {

// Multiplications of VGG-16 forward, in millions (Simonyan and Zisserman, ICLR 2015, configuration D).
const std::vector<double> kVgg16 = {86.7,   1849.7, 924.8, 1849.7, 924.8, 1849.7, 1849.7, 924.8,
                                    1849.7, 1849.7, 462.4, 462.4,  462.4, 102.8,  16.8,   4.1};

/// A chain whose gradients each take as long as the forward; the first layer has no input gradient.
ModelGraph chain(const std::vector<double>& seconds) {
  ModelGraph model;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    Layer layer;
    layer.name = "l" + std::to_string(i);
    if (i > 0) layer.inputs = {LayerId{static_cast<std::int64_t>(i) - 1}};
    layer.times = LayerTimes{{seconds[i]}, {i > 0 ? seconds[i] : 0}, {seconds[i]}};
    layer.output = Bytes{10 * (static_cast<double>(i) + 1)};
    layer.stash = i > 0 ? model.layers[LayerId{i - 1}].output : Bytes{0};
    layer.parameters = 1;
    model.layers.push_back(std::move(layer));
  }
  return model;
}

Plan plan(const std::string& name, const ModelGraph& model, const Cluster& cluster, const std::string& yaml = "{}") {
  const PlannerDef& def = get_from(planners::catalog(), "planner", name);
  const config::Value options = test::checked(yaml, *def.fields);
  return def.plan({model, cluster, CostTable(model, cluster), test::plan_spec(def, options, cluster), 4}).plan;
}

/// Seconds of work of the busiest device.
double largest_load(const Plan& built, const ModelGraph& model, const Cluster& cluster) {
  std::vector<double> load(cluster.devices.size(), 0);
  const StageCosts costs = stage_costs(built, CostTable(model, cluster));
  for (const StageId s : built.stages.ids()) {
    const StageCost& cost = costs.at(s, 0);
    load[built.stage(s).leaders.front().value] += (cost.forward + cost.backward).value;
  }
  return *std::max_element(load.begin(), load.end());
}

/// Edges as text: "l0.F>l1.F=10", in the order of the plan.
std::vector<std::string> edges_of(const Plan& built) {
  std::vector<std::string> lines;
  for (const StageEdge& e : built.edges)
    lines.push_back(built.stage(e.from).name + ">" + built.stage(e.to).name + "=" +
                    std::to_string(std::lround(e.bytes.value)));
  return lines;
}

}  // namespace

TEST_CASE("layerpipe: tasks of VGG-16 on two to ten devices, compared with stages of whole layers") {
  const double whole[] = {23954.4, 16647.0, 13872.6, 11098.2, 10081.8, 8323.5, 8323.5, 8323.5, 5722.5};
  const double tasks[] = {23162.7, 15449.3, 11581.4, 9267.8, 7861.1, 6936.2, 6011.4, 5189.4, 4643.6};
  const ModelGraph model = chain(kVgg16);
  double gains = 0;
  for (int p = 2; p <= 10; ++p) {
    CAPTURE(p);
    const Cluster cluster = test::devices_with(std::vector<double>(static_cast<std::size_t>(p), 1.0));
    const std::string stages = "{stages: " + std::to_string(p) + "}";
    const double slow = largest_load(plan("balanced", model, cluster, stages), model, cluster);
    const double fast = largest_load(plan("layerpipe", model, cluster), model, cluster);
    CHECK(slow == doctest::Approx(whole[p - 2]).epsilon(1e-12));
    CHECK(fast == doctest::Approx(tasks[p - 2]).epsilon(1e-12));
    gains += slow / fast - 1;
    // The abstract's 80 % with 7 to 9 processors is not of VGG-16 by its operations: no division of the work, be it of
    // single gradients, is below an equal share.
    const double share = 3 * std::accumulate(kVgg16.begin(), kVgg16.end(), 0.0) - kVgg16.front();
    if (p >= 7 && p <= 9) CHECK(slow / (share / p) - 1 < 0.63);
    if (p == 9) CHECK(std::round(100 * (slow / fast - 1)) == 60);
  }
  CHECK(std::round(1000 * gains / 9) == 246);
}

TEST_CASE("layerpipe: a chain has a task for each forward and gradient, with their messages") {
  ModelGraph model = chain({1, 2, 3});
  model.layers[LayerId{1}].stash += Bytes{7};               // Beside its input: what only its gradient needs.
  for (Layer& layer : model.layers) layer.parameters = 16;  // 64 bytes, once in an iteration of 8 samples.
  const Cluster cluster = test::devices_with({1, 1});
  const Plan built = plan("layerpipe", model, cluster, "{micro_batch_size: 2}");
  std::vector<std::string> names;
  for (const Stage& stage : built.stages) names.push_back(stage.name);
  CHECK(names == std::vector<std::string>{"l0.F", "l1.F", "l2.F", "l2.dX", "l2.dW", "l1.dX", "l1.dW", "l0.dW", "l0.U",
                                          "l0.F.weights", "l1.U", "l1.F.weights", "l2.U", "l2.dX.weights"});
  CHECK(edges_of(built) == std::vector<std::string>{"l0.F>l1.F=10", "l0.F>l1.dW=10", "l1.F>l2.F=20", "l1.F>l2.dW=20",
                                                    "l1.F>l1.dX=7", "l2.F>l2.dX=30", "l2.F>l2.dW=30", "l2.dX>l1.dX=20",
                                                    "l2.dX>l1.dW=20", "l1.dX>l0.dW=10", "l0.dW>l0.U=0",
                                                    "l0.U>l0.F.weights=8", "l1.dW>l1.U=0", "l1.U>l1.F.weights=8",
                                                    "l2.dW>l2.U=0", "l2.U>l2.dX.weights=8"});
  for (const Stage& stage : built.stages) {  // Each of the two devices has part of every layer.
    const bool once = stage.task == StageTask::Update || stage.task == StageTask::TakeWeights;
    CHECK(stage.micro_batch_size == (once ? 8 : 2));
  }
  CHECK(built.stages[StageId{8}].leaders == built.stages[StageId{7}].leaders);
  CHECK(built.stages[StageId{9}].leaders == built.stages[StageId{0}].leaders);
  CHECK(built.stages[StageId{13}].leaders == built.stages[StageId{3}].leaders);
  CHECK(built.mini_batch == 8);
  CHECK(to_text(built).find("micro-batch 2, input gradient alone; to 5 (20 B a sample); to 6 (20 B a sample)") !=
        std::string::npos);
}

TEST_CASE("layerpipe: layers without weights have no weight gradient, and inputs have no gradient") {
  ModelGraph model = chain({0, 2, 1});
  model.layers[LayerId{0}].parameters = model.layers[LayerId{2}].parameters = 0;
  model.layers[LayerId{0}].times.reset();
  model.layers[LayerId{2}].times->weight_gradient = Seconds{0};
  std::vector<std::string> names;
  for (const Stage& stage : plan("layerpipe", model, test::devices_with({1, 1})).stages) names.push_back(stage.name);
  CHECK(names == std::vector<std::string>{"l0.F", "l1.F", "l2.F", "l2.dX", "l1.dW", "l1.U", "l1.F.weights"});
}

TEST_CASE("layerpipe: a layer without weights keeps its input for its input gradient") {
  ModelGraph model = chain({1, 2, 1, 3});
  model.layers[LayerId{2}].parameters = 0;
  model.layers[LayerId{2}].times->weight_gradient = Seconds{0};
  model.layers[LayerId{2}].stash += Bytes{7};
  const std::vector<std::string> edges = edges_of(plan("layerpipe", model, test::devices_with({1, 1})));
  const auto has = [&](const char* edge) { return std::find(edges.begin(), edges.end(), edge) != edges.end(); };
  CHECK(has("l1.F>l2.F=20"));
  CHECK(has("l2.F>l2.dX=27"));
  CHECK_FALSE(
      std::any_of(edges.begin(), edges.end(), [](const std::string& e) { return e.rfind("l1.F>l1.dX", 0) == 0; }));
}

TEST_CASE("layerpipe: a device that is twice as fast gets the tasks that it ends first") {
  // Times on the fast device: 3 3 | 2 2 2 | 1 1 1. By turns, as fast + slow end: 3, 6 | 8 or 4; and so on:
  //   l2.F fast 3, l2.dX: fast 6 or slow 6 -> fast (the first of equals), l2.dW: fast 9 or slow 6 -> slow 6,
  //   l1.F: fast 8 or slow 10 -> 8, l1.dX: 10 or 10 -> fast 10, l1.dW: 12 or 10 -> slow 10,
  //   l0.F: 11 or 12 -> 11, l0.dW: 12 or 12 -> fast 12.
  const ModelGraph model = chain({2, 4, 6});
  const Cluster cluster = test::devices_with({2, 1});
  const Plan built = plan("layerpipe", model, cluster);
  std::vector<int> devices;
  for (const Stage& stage : built.stages)
    if (stage.task < StageTask::Update) devices.push_back(stage.leaders.front().value);
  CHECK(devices == std::vector<int>{0, 0, 0, 0, 1, 0, 1, 0});
  CHECK(largest_load(built, model, cluster) == 12);
}

TEST_CASE("layerpipe: a task has its own time and weights, and the optimizer is with the weight gradient") {
  ModelGraph model = chain({1, 2});
  model.layers[LayerId{1}].parameters = 100;
  model.layers[LayerId{1}].times = LayerTimes{{2}, {3}, {5}};
  const Cluster cluster = test::devices_with({1});
  const StageCosts costs = stage_costs(plan("layerpipe", model, cluster), CostTable(model, cluster));
  const double seconds[] = {1, 2, 3, 5, 1, 0, 0};
  const double weights[] = {4, 400, 400, 400, 4, 0, 0};  // fp32
  const double updating[] = {0,  0, 0, 1200,
                             12, 0, 0};  // Adam: a gradient of 4, a state of 8; the updates find them there
  REQUIRE(costs.stages() == 7);
  for (std::size_t s = 0; s < 7; ++s) {
    CHECK(costs.at(StageId{s}, 0).forward.value == seconds[s]);
    CHECK(costs.at(StageId{s}, 0).memory.weights.value == weights[s]);
    CHECK((costs.at(StageId{s}, 0).memory.gradients + costs.at(StageId{s}, 0).memory.optimizer).value == updating[s]);
    CHECK(costs.at(StageId{s}, 0).backward.value == 0);
    CHECK(costs.at(StageId{s}, 0).memory.stash.value == 0);
  }
}

TEST_CASE("layerpipe: devices are given by name, each once") {
  const ModelGraph model = chain({1, 1});
  const Cluster cluster = test::devices_with({1, 1, 1});
  for (const Stage& stage : plan("layerpipe", model, cluster, "{devices: [d2, d1]}").stages)
    CHECK(stage.leaders.front() != DeviceId{0});
  const auto refusal = [&](const std::string& yaml) {
    return test::input_error_of([&] { plan("layerpipe", model, cluster, yaml); });
  };
  CHECK(refusal("{devices: [d1, d1]}").find("1: plan.devices: a device is named twice") == 0);
  CHECK(refusal("{devices: []}").find("1: plan.devices: there is no device to use") == 0);
  CHECK(refusal("{devices: [d7]}").find("the cluster has no device 'd7'") != std::string::npos);
}

TEST_CASE("layerpipe: layers that share weights have one update with all gradients, sent to every user") {
  ModelGraph model = chain({1, 1, 1});
  model.layers[LayerId{0}].parameters = 16, model.layers[LayerId{0}].tie = "table";
  model.layers[LayerId{1}].parameters = 0;
  model.layers[LayerId{1}].times = LayerTimes{{1}, {1}, {0}};
  model.layers[LayerId{2}].parameters = 0, model.layers[LayerId{2}].tie = "table";
  const Plan built = plan("layerpipe", model, test::devices_with({1, 1, 1, 1, 1, 1, 1, 1}), "{micro_batch_size: 2}");
  const std::vector<std::string> edges = edges_of(built);
  const auto has = [&](const char* edge) { return std::find(edges.begin(), edges.end(), edge) != edges.end(); };
  CHECK(has("l0.dW>l0.U=0"));
  CHECK(has("l2.dW>l0.U=8"));  // 64 bytes of gradients in an iteration of 8 samples.
  for (const char* edge : {"l0.U>l0.F.weights=8", "l0.U>l2.F.weights=8", "l0.U>l2.dX.weights=8"}) CHECK(has(edge));
  CHECK(std::count_if(built.stages.begin(), built.stages.end(),
                      [](const Stage& s) { return s.task == StageTask::Update; }) == 1);
}

}  // namespace stagecraft::layerpipe_test
