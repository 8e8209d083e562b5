#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"
#include "sim/plan/stage_costs.hpp"
#include "sim/planners/shared/planner.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/planning.hpp"

namespace stagecraft::planners_test {
namespace {

/// A chain of layers with these seconds forward and no backward.
ModelGraph chain(const std::vector<double>& seconds) {
  ModelGraph model;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    Layer layer;
    layer.name = "l" + std::to_string(i);
    if (i > 0) layer.inputs = {LayerId{static_cast<std::int64_t>(i) - 1}};
    layer.times = LayerTimes{{seconds[i]}, {0}, {0}};
    layer.output.value = 8;
    model.layers.push_back(std::move(layer));
  }
  return model;
}

Plan plan(const std::string& name, const ModelGraph& model, const Cluster& cluster, const std::string& yaml,
          int micro_batches = 4) {
  const PlannerDef& def = get_from(planners::catalog(), "planner", name);
  const config::Value options = test::checked(yaml, *def.fields);
  const CostTable costs(model, cluster);
  return def.plan({model, cluster, costs, test::plan_spec(def, options, cluster), micro_batches}).plan;
}

double slowest(const Plan& built, const ModelGraph& model, const Cluster& cluster) {
  double worst = 0;
  const StageCosts costs = stage_costs(built, CostTable(model, cluster));
  for (const StageCost& cost : costs.values()) worst = std::max(worst, cost.forward.value + cost.backward.value);
  return worst;
}

double busiest(const Plan& built, const ModelGraph& model, const Cluster& cluster) {
  const StageCosts costs = stage_costs(built, CostTable(model, cluster));
  std::vector<double> loads(cluster.devices.size(), 0);
  for (const StageId s : built.stages.ids())
    for (std::size_t r = 0; const StageCost& cost : costs.replicas(s))
      loads[built.stages[s].leaders[r++].value] += cost.forward.value + cost.backward.value;
  return *std::max_element(loads.begin(), loads.end());
}

/// The smallest value of `judge` over all divisions of the layers into the stages of a plan.
double least_of_all(Plan trial, int layers, const std::function<double(const Plan&)>& cost_of) {
  double best = kInfinity;
  const std::function<void(int, int)> cut = [&](int stage, int first) {
    if (stage == trial.stage_count()) {
      if (first == layers) best = std::min(best, cost_of(trial));
      return;
    }
    auto& stage_layers = trial.stages[StageId{stage}].shape.layers;
    stage_layers.clear();
    for (int l = first; l < layers; ++l) {
      stage_layers.push_back(LayerId{l});
      const auto saved = stage_layers;
      cut(stage + 1, l + 1);
      stage_layers = saved;
    }
  };
  cut(0, 0);
  return best;
}

}  // namespace

TEST_CASE("balanced: the cut equals the one by hand, and ties go to the left") {
  const Cluster cluster = test::devices_with({1, 1, 1});
  const Plan built = plan("balanced", chain({1, 1, 1, 1, 4}), cluster, "{stages: 3, micro_batch_size: 2}");
  CHECK(built.mini_batch == 8);
  CHECK(built.edges.size() == 2);
  CHECK(built.stages[StageId{2}].shape.layers.size() == 1);
  CHECK(built.stages[StageId{1}].shape.layers.front() ==
        LayerId{2});  // The first two stages are themselves cut best: 2 and 2.
}

TEST_CASE("balanced equals brute force with unequal devices, replicas and layers") {
  Rng rng(3, "balanced");
  for (int round = 0; round < 400; ++round) {
    const int layers = rng.integer(1, 9), stages = rng.integer(1, std::min(layers, 5)), replicas = rng.integer(1, 2);
    std::vector<double> seconds, speeds;
    for (int l = 0; l < layers; ++l) seconds.push_back(rng.integer(0, 3) ? rng.integer(0, 20) : 100);
    for (int d = 0; d < stages * replicas; ++d) speeds.push_back(rng.integer(0, 1) ? 1 : rng.integer(1, 8));
    const ModelGraph model = chain(seconds);
    const Cluster cluster = test::devices_with(speeds);
    const std::string options = "{stages: " + std::to_string(stages) + ", replicas: " + std::to_string(replicas) +
                                ", micro_batch_size: " + std::to_string(replicas + 1) + "}";
    const Plan built = plan("balanced", model, cluster, options);

    const double best = least_of_all(built, layers, [&](const Plan& trial) { return slowest(trial, model, cluster); });
    CAPTURE(round);
    CHECK(slowest(built, model, cluster) == doctest::Approx(best).epsilon(1e-12));
    std::size_t placed = 0;
    for (const Stage& stage : built.stages) placed += stage.shape.layers.size();
    CHECK(placed == static_cast<std::size_t>(layers));
  }
}

TEST_CASE("balanced: several stages on devices of different speeds are mostly optimal") {
  Rng rng(6, "busiest");
  int best = 0;
  double sum = 0, worst = 1;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    const bool loop = round % 2 == 0;
    const int ranks = rng.integer(2, 3), stages = ranks * 2, layers = stages + rng.integer(0, 6);
    std::vector<double> seconds, speeds;
    for (int l = 0; l < layers; ++l) seconds.push_back(rng.integer(1, 20));
    for (int d = 0; d < ranks; ++d) speeds.push_back(rng.integer(1, 3));
    const ModelGraph model = chain(seconds);
    const Cluster cluster = test::devices_with(speeds);
    const Plan built = plan("balanced", model, cluster,
                            "{stages: " + std::to_string(stages) + ", placement: " + (loop ? "loop}" : "v}"));
    const double optimum =
        least_of_all(built, layers, [&](const Plan& trial) { return busiest(trial, model, cluster); });
    const double ratio = busiest(built, model, cluster) / optimum;
    CHECK(ratio >= 1 - 1e-12);
    best += ratio <= 1 + 1e-12;
    sum += ratio;
    worst = std::max(worst, ratio);
  }
  MESSAGE("the best in " << best << " of " << kRounds << ", " << sum / kRounds << " times it on average, at worst "
                         << worst);
  CHECK(best > kRounds / 2);
}

TEST_CASE("balanced: bidirectional stages have a copy on the opposite device, and devices are evened out") {
  const ModelGraph model = chain({1, 1, 1, 1, 1, 1});
  const Cluster cluster = test::devices_with({1, 2});
  const PlannerDef& def = get_from(planners::catalog(), "planner", "balanced");
  const config::Value options = test::checked("{stages: 2}", *def.fields);
  const CostTable costs(model, cluster);
  const auto both_ways = [&](int micro_batches) {
    const PlacementRule placing{Placement::Bidirectional, {2, 2}, [](int, int) { return 1; }};
    return def.plan({model, cluster, costs, test::plan_spec(def, options, cluster), micro_batches, placing}).plan;
  };
  const Plan built = both_ways(3);
  REQUIRE(built.stage_count() == 4);
  CHECK(built.different_stages() == 2);
  for (int s = 0; s < 4; ++s) {
    const Stage& stage = built.stage(StageId{s});
    CHECK(stage.twin.value == (s + 2) % 4);
    CHECK(stage.shape.layers == built.stage(stage.twin).shape.layers);
    CHECK(stage.leaders.front().value == (s == 0 || s == 3 ? 0 : 1));
    CHECK(stage.micros == (s < 2 ? std::vector<int>{0, 2} : std::vector<int>{1}));
  }
  // Data crosses within each copy alone.
  REQUIRE(built.edges.size() == 2);
  CHECK(built.edges[0].from == StageId{0});
  CHECK(built.edges[0].to == StageId{1});
  CHECK(built.edges[1].from == StageId{2});
  CHECK(built.edges[1].to == StageId{3});
  CHECK(built.edges[1].bytes.value == 8);
  // Of 3 micro-batches the slow device runs stage 0 twice and stage 1 once, so its stage is the short one.
  CHECK(built.stages[StageId{0}].shape.layers.size() == 1);
  CHECK_THROWS_AS(both_ways(1), Infeasible);
}

TEST_CASE("balanced: device order and recomputation are options; plans that do not fit are refused") {
  const Cluster cluster = test::devices_with({1, 4});
  const ModelGraph model = chain({1, 1, 1, 1, 1});
  const Plan built = plan("balanced", model, cluster, "{stages: 2, devices: [d1, d0], recompute: full}");
  CHECK(built.stages[StageId{0}].leaders.front() == DeviceId{1});
  CHECK(built.stages[StageId{0}].shape.layers.size() == 4);
  CHECK(built.stages[StageId{0}].shape.recomputes_all());

  const auto code = [&](const std::string& yaml) {
    try {
      plan("balanced", model, cluster, yaml);
    } catch (const Infeasible& error) {
      return error.code() + ": " + error.what();
    }
    return std::string();
  };
  CHECK(code("{stages: 3}").find("devices: 3 stages need 3 devices, but the cluster has 2") == 0);
  CHECK(code("{stages: 2, replicas: 2, micro_batch_size: 1}").find("devices: ") == 0);
  CHECK_FALSE(code("{stages: 3}").empty());
  const ModelGraph one = chain({1});
  CHECK_THROWS_AS(plan("balanced", one, cluster, "{stages: 2}"), Infeasible);
  CHECK(test::input_error_of([&] {
          plan("balanced", model, cluster, "{stages: 2, devices: [d0, d7]}");
        }).find("1: devices[1]: the cluster has no device 'd7'") == 0);
}

TEST_CASE("balanced plans 20,000 layers on 256 devices quickly") {
  Rng rng(5, "quick");
  std::vector<double> seconds;
  for (int l = 0; l < 20000; ++l) seconds.push_back(rng.uniform(1, 2));
  const Cluster cluster = test::devices_with(std::vector<double>(256, 1.0));
  const Plan built = plan("balanced", chain(seconds), cluster, "{stages: 256}");
  CHECK(built.stage_count() == 256);
}

TEST_CASE("balanced plans 512 stages on 64 devices of two speeds quickly") {
  Rng rng(7, "quick");
  std::vector<double> seconds, speeds;
  for (int l = 0; l < 4000; ++l) seconds.push_back(rng.uniform(1, 2));
  for (int d = 0; d < 64; ++d) speeds.push_back(d % 3 == 0 ? 2 : 1);
  const ModelGraph model = chain(seconds);
  const Cluster cluster = test::devices_with(speeds);
  const Plan built = plan("balanced", model, cluster, "{stages: 512, placement: loop}");
  double work = 0, speed = 0;
  for (const double s : seconds) work += s;
  for (const double s : speeds) speed += s;
  CHECK(busiest(built, model, cluster) <= 1.02 * work / speed);
}

TEST_CASE("explicit: stages have ranges of layers, replicas and sizes") {
  const Cluster cluster = test::devices_with({1, 1, 1});
  const ModelGraph model = chain({1, 1, 1, 1});
  const Plan built = plan("explicit", model, cluster,
                          "stages:\n"
                          "  - {name: first, layers: [l0..l1, l2], devices: [d0, d2], micro_batch_size: 1}\n"
                          "  - {layers: [l3], device: d1, micro_batch_size: 4, recompute: full}\n");
  CHECK(built.stages[StageId{0}].name == "first");
  CHECK(built.stages[StageId{0}].shape.layers.size() == 3);
  CHECK(built.stages[StageId{0}].leaders == std::vector<DeviceId>{DeviceId{0}, DeviceId{2}});
  CHECK(built.stages[StageId{1}].name == "s1");
  CHECK(built.stages[StageId{1}].shape.recomputes_all());
  CHECK(built.mini_batch == 16);
  REQUIRE(built.edges.size() == 1);
  CHECK(built.edges[0].bytes.value == 8);
}

TEST_CASE("explicit: every problem is reported with its place") {
  const Cluster cluster = test::devices_with({1, 1});
  const ModelGraph model = chain({1, 1, 1, 1});
  const std::string error = test::input_error_of([&] {
    plan("explicit", model, cluster,
         "stages:\n"
         "  - {layers: [l1..l0, l9], device: d0}\n"
         "  - {layers: [l3, l3], devices: [d1, d5]}\n"
         "  - {layers: [l2]}\n");
  });
  CHECK(error.find("2: stages[0].layers[0]: 'l0' comes after 'l1'") == std::string::npos);
  CHECK(error.find("2: stages[0].layers[0]: 'l1' comes after 'l0'") != std::string::npos);
  CHECK(error.find("2: stages[0].layers[1]: the model has no layer 'l9'") != std::string::npos);
  CHECK(error.find("3: stages[1].layers[1]: layer 'l3' is already in this stage") != std::string::npos);
  CHECK(error.find("3: stages[1].devices[1]: the cluster has no device 'd5'") != std::string::npos);
  CHECK(error.find("4: stages[2]: the stage has no device") != std::string::npos);
  CHECK(error.find("2 layers are in no stage: 'l0', 'l1'") != std::string::npos);
}

TEST_CASE("explicit: a part that is not convex is refused as a cycle with its stages") {
  const Cluster cluster = test::devices_with({1, 1});
  const std::string error = test::input_error_of([&] {
    plan("explicit", chain({1, 1, 1}), cluster,
         "stages:\n"
         "  - {name: ends, layers: [l0, l2], device: d0}\n"
         "  - {name: middle, layers: [l1], device: d1}\n");
  });
  CHECK(error.find("2: stages[0]: the stages wait for each other in a circle: 'ends' -> 'middle' -> 'ends'") == 0);
}

TEST_CASE("explicit: branches run in parallel, or in sequence if asked") {
  ModelGraph model = chain({1, 1, 1});
  model.layers[LayerId{1}].inputs.clear();
  model.layers[LayerId{2}].inputs = {LayerId{0}, LayerId{1}};
  const Cluster cluster = test::devices_with({1, 1, 1});
  const std::string stages =
      "stages:\n  - {layers: [l0], device: d0}\n  - {layers: [l1], device: d1}\n  - {layers: [l2], device: d2}\n";
  CHECK(plan("explicit", model, cluster, stages).edges.size() == 2);
  CHECK(plan("explicit", model, cluster, stages + "sequential: true\n").edges.size() == 3);
}

}  // namespace stagecraft::planners_test
