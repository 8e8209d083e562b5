// The planners graphpipe and graph-exact on models and clusters of the project.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "sim/core/diagnostic.hpp"
#include "sim/plan/stage_costs.hpp"
#include "sim/planners/shared/planner.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/planning.hpp"

namespace stagecraft::graph_planners_test {
namespace {

/// Branches of layers that take a second for the forward and for each gradient, and a layer without work that joins
/// them.
ModelGraph branches(int count, int length) {
  ModelGraph model;
  std::vector<LayerId> ends;
  for (int b = 0; b < count; ++b)
    for (int l = 0; l < length; ++l) {
      Layer layer;
      layer.name = "b" + std::to_string(b) + "." + std::to_string(l);
      const LayerId id{model.layers.size()};
      if (l > 0) layer.inputs = {LayerId{id.value - 1}};
      if (l + 1 == length) ends.push_back(id);
      layer.times = LayerTimes{{1}, {1}, {1}};
      layer.output.value = layer.stash.value = 8;
      layer.parameters = 1;
      model.layers.push_back(std::move(layer));
    }
  Layer join;
  join.name = "join";
  join.inputs = ends;
  join.times = LayerTimes{};
  model.layers.push_back(std::move(join));
  return model;
}

using test::planned;

/// Checks that the plan has every layer exactly once and every device at most once.
void check_use(const Planned& result, const ModelGraph& model) {
  std::set<LayerId> layers;
  std::set<DeviceId> devices;
  std::size_t named = 0, used = 0;
  for (const Stage& stage : result.plan.stages) {
    layers.insert(stage.shape.layers.begin(), stage.shape.layers.end());
    devices.insert(stage.leaders.begin(), stage.leaders.end());
    named += stage.shape.layers.size(), used += stage.leaders.size();
  }
  CHECK(layers.size() == model.layers.size());
  CHECK(named == model.layers.size());
  CHECK(devices.size() == used);
}

/// Memory of the fullest stage by the costs of the plan: one micro-batch in flight for each stage from it on.
double memory_of(const Planned& result, const ModelGraph& model, const Cluster& cluster, int micro_batches) {
  const StageCosts costs = stage_costs(result.plan, CostTable(model, cluster));
  const std::vector<int> depth = depth_to_sink(result.plan.graph());
  double peak = 0;
  for (int s = 0; s < costs.stages(); ++s)
    for (const StageCost& cost : costs.replicas(StageId{s}))
      peak = std::max(peak, stage_memory(cost.memory, std::min(micro_batches, depth[s])).total().value);
  return peak;
}

}  // namespace

TEST_CASE("planners: graphpipe and graph-exact run branches in parallel") {
  const ModelGraph model = branches(2, 4);
  const Cluster cluster = test::star(8, 1e12, 0);
  const Planned quick = planned("graphpipe", model, cluster, "{}"),
                exact = planned("graph-exact", model, cluster, "{}");
  const Planned chain = planned("graph-exact", model, cluster, "{sequential: true}");
  for (const Planned* result : {&quick, &exact, &chain}) {
    CHECK(result->plan.stage_count() == 8);
    CHECK(result->plan.mini_batch == 8);
    CHECK(result->states > 0);
    CHECK(result->model_limit.value <= result->predicted.value * (1 + 1e-12));
    CHECK(result->memory.value == memory_of(*result, model, cluster, 8));
    check_use(*result, model);
  }
  CHECK(quick.predicted.value == doctest::Approx(3).epsilon(1e-9));
  CHECK(quick.model_limit.value == doctest::Approx(3).epsilon(1e-12));
  // 7 times 3 s and once the way through 5 stages, or 8; the messages take 1e-10 s.
  CHECK(exact.predicted.value * 8 == doctest::Approx(7 * 3 + 5 * 3).epsilon(1e-9));
  CHECK(chain.predicted.value * 8 == doctest::Approx(7 * 3 + 8 * 3).epsilon(1e-9));
  CHECK(exact.limit_reason == "the search was exhaustive");
  const std::vector<int> shallow = depth_to_sink(exact.plan.graph()), deep = depth_to_sink(chain.plan.graph());
  CHECK(*std::max_element(shallow.begin(), shallow.end()) == 5);
  CHECK(*std::max_element(deep.begin(), deep.end()) == 8);
  // Branches use devices side by side: a stage that follows another one of its branch has the next device.
  for (const StageEdge& edge : exact.plan.edges)
    if (edge.to.value != 7)
      CHECK(exact.plan.stage(edge.to).leaders.front().value == exact.plan.stage(edge.from).leaders.front().value + 1);
}

TEST_CASE("planners: graph pipelines fit in memory, or are refused") {
  const ModelGraph model = branches(2, 2);
  const Cluster cluster = test::star(5, 1e12, 0);
  for (const char* name : {"graphpipe", "graph-exact"}) {
    CAPTURE(name);
    const Planned roomy = planned(name, model, cluster, "{}");
    // A layer keeps 16 bytes, and 8 of each micro-batch in flight: 16 + 8 depth.
    const Planned tight = planned(name, model, cluster, "{memory: 40 B}");
    CHECK(roomy.plan.stage_count() >= 4);
    CHECK(tight.memory.value <= 40);
    CHECK(tight.memory.value == memory_of(tight, model, cluster, 8));
    CHECK_THROWS_AS(planned(name, model, cluster, "{memory: 20 B}"), Infeasible);
    CHECK_THROWS_AS(planned(name, model, cluster, "{devices: [d0], memory: 90 B}"), Infeasible);
    CHECK(planned(name, model, cluster, "{devices: [d3]}").plan.stage_count() == 1);
    CHECK(test::input_error_of([&] { planned(name, model, cluster, "{devices: [d0, d0]}"); }).find("named twice") !=
          std::string::npos);
  }
}

TEST_CASE("planners: graph pipelines replicate long layers in powers of two") {
  const ModelGraph model = branches(1, 1);
  const Cluster cluster = test::star(7, 1e12, 0);
  for (const char* name : {"graphpipe", "graph-exact"}) {
    CAPTURE(name);
    const Planned result = planned(name, model, cluster, "{micro_batch_size: 8}");
    CHECK(result.plan.stages[StageId{0}].leaders.size() == 4);
    CHECK(result.predicted.value >= 6);
    CHECK(planned(name, model, cluster, "{micro_batch_size: 2}").plan.stages[StageId{0}].leaders.size() == 2);
    CHECK(planned(name, model, cluster, "{micro_batch_size: 8, bandwidth: 1 B/s}").predicted.value < 24);
  }
  // 4 replicas reduce 4 bytes of gradients: 2 * 3 / 4 * 4 bytes at 1 byte a second, in 8 micro-batches of 6 s.
  CHECK(planned("graphpipe", model, cluster, "{micro_batch_size: 8, bandwidth: 1 B/s}").predicted.value ==
        doctest::Approx(6 + 6.0 / 8).epsilon(1e-12));
}

TEST_CASE("planners: stages of a graph get the type that suits them") {
  const ModelGraph model = branches(2, 2);
  Cluster cluster = test::star(4, 1e12, 0);
  cluster.types.push_back(cluster.types.front());
  cluster.types.back().speed = 0.5;
  cluster.types.back().memory.value = 100;
  cluster.devices[DeviceId{3}].type = DeviceTypeId{1};
  for (const char* name : {"graphpipe", "graph-exact"}) {
    CAPTURE(name);
    const Planned mixed = planned(name, model, cluster, "{}"),
                  alike = planned(name, model, cluster, "{devices: [d0, d1, d2]}");
    CHECK(mixed.predicted.value <= alike.predicted.value * (1 + 1e-9));
    CHECK(mixed.limit_reason.find("with replicas of one type, or as slow as the slowest") != std::string::npos);
    CHECK(alike.limit_reason.find("slow") == std::string::npos);
    check_use(mixed, model);
    for (const Stage& stage : mixed.plan.stages)  // 16 bytes of weights and 8 for each later stage: one layer, or two.
      if (stage.leaders.front().value == 3) CHECK(stage.shape.layers.size() <= 2);
  }
  // 3 s a layer, 6 s on the slow device: four of these stages in parallel take 6 s, as two layers on a fast one do.
  CHECK(planned("graphpipe", model, cluster, "{}").predicted.value == doctest::Approx(6).epsilon(1e-9));
  // Three devices of speed 2 for six layers of 3 s, one of speed 1 for one: 3 s each.
  cluster.types.front().speed = 2, cluster.types.back().speed = 1;
  CHECK(planned("graphpipe", branches(1, 7), cluster, "{}").predicted.value == doctest::Approx(3).epsilon(1e-9));
  // With more types than the planner distinguishes, all devices count as the slowest.
  const Planned many = planned("graphpipe", model, test::devices_with({1, 2, 3, 4, 5, 6}), "{bandwidth: 1 TB/s}");
  CHECK(many.limit_reason.find("with every device as slow as the slowest") != std::string::npos);
}

TEST_CASE("planners: graph-exact fuses chains, and takes GraphPipe's stages if its search is too long") {
  const ModelGraph model = branches(4, 6);
  const Cluster cluster = test::star(8, 1e12, 0);
  const Planned fused = planned("graph-exact", model, cluster, "{blocks: 9}");
  CHECK(fused.limit_reason == "the search over 9 blocks was exhaustive");
  check_use(fused, model);
  CHECK(planned("graph-exact", model, cluster, "{}").predicted <= fused.predicted);
  const Planned cut = planned("graph-exact", model, cluster, "{states: 10}");
  CHECK(cut.limit_reason.find("a heuristic: GraphPipe's stages") != std::string::npos);
  CHECK(cut.model_limit <= cut.predicted);
  CHECK(cut.predicted >= planned("graph-exact", model, cluster, "{}").predicted);
}

}  // namespace stagecraft::graph_planners_test
