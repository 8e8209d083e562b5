#include "sim/plan/stage_costs.hpp"

#include <doctest/doctest.h>

#include "sim/planners/shared/planner.hpp"
#include "tests/support/clusters.hpp"

namespace stagecraft::stage_costs_test {
namespace {

/// a feeds b and c, which both feed d; one second for everything.
ModelGraph diamond() {
  ModelGraph model;
  model.layers.resize(4);
  const std::vector<std::vector<LayerId>> inputs{{}, {LayerId{0}}, {LayerId{0}}, {LayerId{1}, LayerId{2}}};
  for (std::size_t i = 0; i < 4; ++i) {
    Layer& layer = model.layers[LayerId{i}];
    layer.name = std::string(1, static_cast<char>('a' + i));
    layer.inputs = inputs[i];
    layer.times = LayerTimes{{1}, {1}, {1}};
    layer.parameters = 10;
    layer.output.value = 100;
    layer.stash.value = 7;
  }
  return model;
}

Stage stage(std::vector<LayerId> layers, std::vector<DeviceId> devices, int size) {
  Stage result;
  result.shape.layers = std::move(layers);
  result.place_on(std::move(devices));
  result.micro_batch_size = size;
  return result;
}

}  // namespace

TEST_CASE("replicas share a micro-batch by whole samples") {
  const ModelGraph model = diamond();
  const Cluster cluster = test::bare_cluster(3);
  Plan plan;
  plan.stages = {stage({LayerId{0}, LayerId{1}, LayerId{2}, LayerId{3}}, {DeviceId{0}, DeviceId{1}, DeviceId{2}}, 8)};
  const StageCosts costs = stage_costs(plan, CostTable(model, cluster));
  CHECK(costs.at(StageId{0}, 0).forward.value == 4 * 2);
  CHECK(costs.at(StageId{0}, 1).forward.value == 4 * 3);
  CHECK(costs.at(StageId{0}, 2).forward.value == 4 * 3);
  CHECK(costs.at(StageId{0}, 1).backward.value == 4 * 3 * 2);
  CHECK(costs.at(StageId{0}, 1).recompute.value == costs.at(StageId{0}, 1).forward.value);
  CHECK(costs.at(StageId{0}, 1).memory.stash.value == 4 * 3 * 7);
  CHECK(costs.at(StageId{0}, 1).memory.weights.value == 4 * 10 * 4);
  CHECK(costs.at(StageId{0}, 1).memory.optimizer.value == 4 * 10 * 8);
  CHECK(parameters_of(plan.stages[StageId{0}].shape.layers, model) == 4 * 10);
  CHECK(costs.at(StageId{0}, 1).memory.recompute_stash.value == 0);
}

TEST_CASE("a foreign tensor enters once, and is sent once to each stage") {
  ModelGraph model = diamond();
  for (Layer& layer : model.layers) layer.stash.value = 1000;
  const Cluster cluster = test::bare_cluster(2);
  Plan plan;
  plan.mini_batch = 2;
  plan.stages = {stage({LayerId{0}}, {DeviceId{0}}, 2), stage({LayerId{1}, LayerId{2}, LayerId{3}}, {DeviceId{1}}, 2)};
  add_data_edges(plan, model);
  REQUIRE(plan.edges.size() == 1);
  CHECK(plan.edges[0].bytes.value == 100);
  const auto memory = [&](int s) {
    for (Stage& one : plan.stages) one.shape.recomputation = Recomputation::Full;
    return stage_costs(plan, CostTable(model, cluster)).at(StageId{s}, 0).memory;
  };
  CHECK(memory(1).stash.value == 200);
  CHECK(memory(1).whole_stash().value == 3 * 2 * 1000);

  plan.stages = {stage({LayerId{0}}, {DeviceId{0}}, 2), stage({LayerId{1}}, {DeviceId{1}}, 2),
                 stage({LayerId{2}, LayerId{3}}, {DeviceId{1}}, 2)};
  plan.edges.clear();
  add_data_edges(plan, model);
  CHECK(plan.edges.size() == 3);
  CHECK(memory(2).stash.value == 400);
}

TEST_CASE("all weights of a stage are touched, whatever the share of a replica") {
  const ModelGraph model = diamond();
  Cluster cluster = test::bare_cluster(3);
  cluster.types.front().memory_bandwidth.value = 20;
  Plan plan;
  plan.stages = {stage({LayerId{0}, LayerId{1}}, {DeviceId{0}, DeviceId{1}}, 8),
                 stage({LayerId{2}, LayerId{3}}, {DeviceId{2}}, 8)};
  const StageCosts costs = stage_costs(plan, CostTable(model, cluster));
  for (const StageCost& cost : costs.values()) CHECK(cost.touch.value == 2 * 10 * 4 / 20.0);
}

TEST_CASE("a stage keeps a copy of weights that another stage owns, and its own bias") {
  ModelGraph model = diamond();
  model.layers[LayerId{0}].tie = model.layers[LayerId{2}].tie = model.layers[LayerId{3}].tie = "table";
  model.layers[LayerId{2}].parameters = 3, model.layers[LayerId{3}].parameters = 0;
  const Cluster cluster = test::bare_cluster(3);
  const auto weights = [&](std::vector<LayerId> layers) {
    Plan plan;
    plan.stages = {stage(std::move(layers), {DeviceId{0}}, 1)};
    return stage_costs(plan, CostTable(model, cluster)).at(StageId{0}, 0).memory.weights.value / 4;
  };
  CHECK(weights({LayerId{0}, LayerId{1}}) == 10 + 10);
  CHECK(weights({LayerId{2}, LayerId{3}}) == 3 + 10);
  CHECK(weights({LayerId{2}}) == 3 + 10);
  CHECK(weights({LayerId{3}}) == 10);
  CHECK(weights({LayerId{0}, LayerId{2}, LayerId{3}}) == 10 + 3);
}

TEST_CASE("uniform costs are equal for every stage and replica") {
  StageCost cost;
  cost.forward.value = 3;
  const StageCosts costs = uniform_costs(chain_plan(3, 3, 4), cost);
  CHECK(costs.stages() == 3);
  CHECK(costs.at(StageId{2}, 0).forward.value == 3);
}

}  // namespace stagecraft::stage_costs_test
