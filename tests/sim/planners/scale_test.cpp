// Planners where an exact search would be too long: a heuristic that says so, with a bound that holds for every plan.

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "sim/planners/shared/planner.hpp"
#include "sim/planners/spp/partition.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/planning.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::scale_test {
namespace {

using test::planned;

/// Layers one after another that take a second for the forward and for each gradient, without messages.
ModelGraph chain(int length) {
  ModelGraph model;
  for (int l = 0; l < length; ++l) {
    Layer layer;
    layer.name = "l" + std::to_string(l);
    if (l > 0) layer.inputs = {LayerId{l - 1}};
    layer.times = LayerTimes{{1}, {1}, {1}};
    model.layers.push_back(std::move(layer));
  }
  return model;
}

/// As many devices of each of four types, the first the fastest.
Cluster four_types(int each) {
  Cluster cluster = test::star(4 * each, 1e12, 0);
  cluster.types.clear();
  for (const double speed : {4, 3, 2, 1}) {
    cluster.types.push_back({});
    cluster.types.back().speed = speed;
  }
  for (const DeviceId d : cluster.devices.ids()) cluster.devices[d].type = DeviceTypeId{d.value / each};
  return cluster;
}

void check_heuristic(const Planned& result) {
  CAPTURE(result.limit_reason);
  CHECK(result.limit_reason.find("a heuristic") != std::string::npos);
  CHECK(result.model_limit.value > 0);
  CHECK(result.model_limit.value <= result.predicted.value * (1 + 1e-9));
  std::set<DeviceId> devices;
  std::size_t used = 0;
  for (const Stage& stage : result.plan.stages)
    devices.insert(stage.leaders.begin(), stage.leaders.end()), used += stage.leaders.size();
  CHECK(devices.size() == used);
}

}  // namespace

TEST_CASE("planners answer for 96 layers on 64 devices of four types, with all work shared as their bound") {
  const ModelGraph model = chain(96);
  const Cluster cluster = four_types(16);
  std::vector<const char*> planners{"pipedream", "piper"};
  if (test::all_trials()) planners.insert(planners.end(), {"graphpipe", "graph-exact"});  // These take seconds.
  for (const char* name : planners) {
    CAPTURE(name);
    const Planned result = planned(name, model, cluster, "{micro_batch_size: 8}");
    check_heuristic(result);
    // Device seconds of one sample are 3 s of each layer; 16 devices of each speed have 16 (4 + 3 + 2 + 1) = 160 of it.
    CHECK(result.model_limit.value == doctest::Approx(8 * 96 * 3 / 160.0).epsilon(1e-9));
    CHECK(result.predicted.value < 2 * result.model_limit.value);
  }
}

TEST_CASE("planners: piper has more devices than micro-batches, and says which are idle") {
  const ModelGraph model = chain(8);
  const Planned result = planned("piper", model, test::star(40, 1e12, 0), "{micro_batch_size: 4}", 4);
  int used = 0;
  for (const Stage& stage : result.plan.stages) used += static_cast<int>(stage.leaders.size());
  CHECK(used == 32);  // Four replicas of each layer, more than the four micro-batches in all.
  CHECK(result.predicted.value == doctest::Approx(3).epsilon(1e-6));
  CHECK(result.limit_reason == "the search was exhaustive; 8 devices idle: they make no such plan faster");
}

TEST_CASE(
    "planners: piper answers for a thousand layers; with too many stages it ends them at fewer places, and says so") {
  if (!test::all_trials()) return;  // These take seconds.
  const ModelGraph model = chain(1000);
  const Planned whole = planned("piper", model, test::star(16, 1e12, 0), "{micro_batch_size: 8}", 16);
  CHECK(whole.limit_reason == "the search was exhaustive");
  CHECK(whole.predicted.value == doctest::Approx(8 * 3 * 1000 / 16.0).epsilon(0.01));
  const Planned divided = planned("piper", model, test::star(2520, 1e12, 0), "{micro_batch_size: 2520}", 2520);
  check_heuristic(divided);
}

TEST_CASE("spp: a hierarchy of links is ordered group by group, as least cuts would cross each slow link once") {
  spp::Bandwidths bandwidth(8, std::vector<double>(8, 1));  // Devices d and d + 4 share a node.
  for (int d = 0; d < 4; ++d) bandwidth[d][d + 4] = bandwidth[d + 4][d] = 10;
  CHECK(spp::order_devices(bandwidth) == std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7});
}

}  // namespace stagecraft::scale_test
