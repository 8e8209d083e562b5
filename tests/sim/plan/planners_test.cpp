#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "sim/core/random.hpp"
#include "sim/plan/planner.hpp"
#include "sim/plan/stage_cost.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/clusters.hpp"

using namespace stagecraft;

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

Cluster devices_with(const std::vector<double>& speeds) {
  Cluster cluster = test::bare_cluster(static_cast<int>(speeds.size()));
  cluster.types.clear();
  for (std::size_t d = 0; d < speeds.size(); ++d) {
    cluster.types.emplace_back();
    cluster.types.back().speed = speeds[d];
    cluster.devices[d].type = static_cast<int>(d);
  }
  return cluster;
}

Plan plan(const std::string& name, const ModelGraph& model, const Cluster& cluster, const std::string& yaml,
          int micro_batches = 4) {
  const PlannerDef& def = get_from(planners::all(), "planner", name);
  const config::Value options = test::checked(yaml, *def.fields);
  const CostTable costs(model, cluster);
  return def.plan({model, cluster, costs, options, micro_batches}).plan;
}

double slowest(const Plan& made, const ModelGraph& model, const Cluster& cluster) {
  double worst = 0;
  for (const auto& replicas : stage_costs(made, CostTable(model, cluster)))
    for (const StageCost& cost : replicas) worst = std::max(worst, cost.forward.value + cost.backward.value);
  return worst;
}

}  // namespace

TEST_CASE("balanced: a cut by hand, ties to the left") {
  const Cluster cluster = devices_with({1, 1, 1});
  const Plan made = plan("balanced", chain({1, 1, 1, 1, 4}), cluster, "{stages: 3, micro_batch_size: 2}");
  CHECK(made.mini_batch == 8);
  CHECK(made.edges.size() == 2);
  CHECK(made.stages[2].layers.size() == 1);
  CHECK(made.stages[1].layers.front() == LayerId{2});  // The first two stages are themselves cut best: 2 and 2.
}

TEST_CASE("balanced equals brute force, with unequal devices, replicas and layers") {
  Rng rng(3, "balanced");
  for (int round = 0; round < 400; ++round) {
    const int layers = rng.integer(1, 9), stages = rng.integer(1, std::min(layers, 5)), replicas = rng.integer(1, 2);
    std::vector<double> seconds, speeds;
    for (int l = 0; l < layers; ++l) seconds.push_back(rng.integer(0, 3) ? rng.integer(0, 20) : 100);
    for (int d = 0; d < stages * replicas; ++d) speeds.push_back(rng.integer(0, 1) ? 1 : rng.integer(1, 8));
    const ModelGraph model = chain(seconds);
    const Cluster cluster = devices_with(speeds);
    const std::string options = "{stages: " + std::to_string(stages) + ", replicas: " + std::to_string(replicas) +
                                ", micro_batch_size: " + std::to_string(replicas + 1) + "}";
    const Plan made = plan("balanced", model, cluster, options);

    double best = std::numeric_limits<double>::infinity();
    Plan trial = made;
    const std::function<void(int, int)> cut = [&](int stage, int first) {
      if (stage == stages) {
        if (first == layers) best = std::min(best, slowest(trial, model, cluster));
        return;
      }
      auto& own = trial.stages[static_cast<std::size_t>(stage)].layers;
      own.clear();
      for (int l = first; l < layers; ++l) {
        own.push_back(LayerId{l});
        const auto kept = own;
        cut(stage + 1, l + 1);
        own = kept;
      }
    };
    cut(0, 0);
    CAPTURE(round);
    CHECK(slowest(made, model, cluster) == doctest::Approx(best).epsilon(1e-12));
    std::size_t placed = 0;
    for (const Stage& stage : made.stages) placed += stage.layers.size();
    CHECK(placed == static_cast<std::size_t>(layers));
  }
}

TEST_CASE("balanced: device order, recompute, and what does not fit") {
  const Cluster cluster = devices_with({1, 4});
  const ModelGraph model = chain({1, 1, 1, 1, 1});
  const Plan made = plan("balanced", model, cluster, "{stages: 2, devices: [d1, d0], recompute: full}");
  CHECK(made.stages[0].devices.front() == DeviceId{1});
  CHECK(made.stages[0].layers.size() == 4);
  CHECK(made.stages[0].recompute);

  const auto code = [&](const std::string& yaml) {
    try {
      plan("balanced", model, cluster, yaml);
    } catch (const Infeasible& error) {
      return error.code() + ": " + error.what();
    }
    return std::string();
  };
  CHECK(code("{stages: 3}").find("devices: 3 stages need 3 devices, but the cluster has 2") == 0);
  CHECK(code("{stages: 2, replicas: 2, micro_batch_size: 2}").find("devices: ") == 0);
  CHECK_FALSE(code("{stages: 3}").empty());
  const ModelGraph one = chain({1});
  CHECK_THROWS_AS(plan("balanced", one, cluster, "{stages: 2}"), Infeasible);
  CHECK(test::input_error_of([&] {
          plan("balanced", model, cluster, "{stages: 2, devices: [d0, d7]}");
        }).find("1: devices[1]: the cluster has no device 'd7'") == 0);
}

TEST_CASE("balanced is quick: 20,000 layers on 256 devices") {
  Rng rng(5, "quick");
  std::vector<double> seconds;
  for (int l = 0; l < 20000; ++l) seconds.push_back(rng.uniform(1, 2));
  const Cluster cluster = devices_with(std::vector<double>(256, 1.0));
  const Plan made = plan("balanced", chain(seconds), cluster, "{stages: 256}");
  CHECK(made.stage_count() == 256);
}

TEST_CASE("explicit: ranges, replicas and sizes") {
  const Cluster cluster = devices_with({1, 1, 1});
  const ModelGraph model = chain({1, 1, 1, 1});
  const Plan made = plan("explicit", model, cluster,
                         "stages:\n"
                         "  - {name: first, layers: [l0..l1, l2], devices: [d0, d2], micro_batch_size: 2}\n"
                         "  - {layers: [l3], device: d1, micro_batch_size: 4, recompute: full}\n");
  CHECK(made.stages[0].name == "first");
  CHECK(made.stages[0].layers.size() == 3);
  CHECK(made.stages[0].devices == std::vector<DeviceId>{DeviceId{0}, DeviceId{2}});
  CHECK(made.stages[1].name == "s1");
  CHECK(made.stages[1].recompute);
  CHECK(made.mini_batch == 16);
  REQUIRE(made.edges.size() == 1);
  CHECK(made.edges[0].bytes.value == 8);
}

TEST_CASE("explicit: everything wrong, each at its place") {
  const Cluster cluster = devices_with({1, 1});
  const ModelGraph model = chain({1, 1, 1, 1});
  const std::string error = test::input_error_of([&] {
    plan("explicit", model, cluster,
         "stages:\n"
         "  - {layers: [l1..l0, l9], device: d0}\n"
         "  - {layers: [l3, l3], devices: [d1, d5]}\n"
         "  - {layers: [l2]}\n");
  });
  CHECK(error.find("2: stages[0].layers[0]: 'l0' comes behind 'l1'") == std::string::npos);
  CHECK(error.find("2: stages[0].layers[0]: 'l1' comes behind 'l0'") != std::string::npos);
  CHECK(error.find("2: stages[0].layers[1]: the model has no layer 'l9'") != std::string::npos);
  CHECK(error.find("3: stages[1].layers[1]: layer 'l3' is already in this stage") != std::string::npos);
  CHECK(error.find("3: stages[1].devices[1]: the cluster has no device 'd5'") != std::string::npos);
  CHECK(error.find("4: stages[2]: the stage has no device") != std::string::npos);
  CHECK(error.find("2 layers are in no stage: 'l0', 'l1'") != std::string::npos);
}

TEST_CASE("explicit: a part that is not convex is a circle with names") {
  const Cluster cluster = devices_with({1, 1});
  const std::string error = test::input_error_of([&] {
    plan("explicit", chain({1, 1, 1}), cluster,
         "stages:\n"
         "  - {name: ends, layers: [l0, l2], device: d0}\n"
         "  - {name: middle, layers: [l1], device: d1}\n");
  });
  CHECK(error.find("2: stages[0]: the stages wait for each other in a circle: 'ends' -> 'middle' -> 'ends'") == 0);
}

TEST_CASE("explicit: branches run side by side, or one after the other when asked") {
  ModelGraph model = chain({1, 1, 1});
  model.layers[1].inputs.clear();
  model.layers[2].inputs = {LayerId{0}, LayerId{1}};
  const Cluster cluster = devices_with({1, 1, 1});
  const std::string stages =
      "stages:\n  - {layers: [l0], device: d0}\n  - {layers: [l1], device: d1}\n  - {layers: [l2], device: d2}\n";
  CHECK(plan("explicit", model, cluster, stages).edges.size() == 2);
  CHECK(plan("explicit", model, cluster, stages + "sequential: true\n").edges.size() == 3);
}
