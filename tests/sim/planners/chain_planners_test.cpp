// The planners pipedream, brute, piper and 2bw on models and clusters of the project.

#include <doctest/doctest.h>

#include "sim/core/diagnostic.hpp"
#include "sim/planners/shared/planner.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/planning.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::chain_planners_test {
namespace {

using test::chain;
using test::planned;

std::string shape(const Plan& plan) {
  std::string text;
  for (const Stage& stage : plan.stages)
    text += (text.empty() ? "" : "-") + std::to_string(stage.shape.layers.size()) + "x" +
            std::to_string(stage.leaders.size());
  return text;
}

/// Hosts whose devices share a switch; one more switch joins these.
Cluster hosts(int count, int each, double inside, double between) {
  Cluster cluster = test::bare_cluster(count * each, count + 1);
  for (int d = 0; d < count * each; ++d) {
    cluster.devices[DeviceId{d}].host = "h" + std::to_string(d / each);
    test::connect(cluster, {d, count * each + d / each}, inside, 0);
  }
  for (int h = 0; h < count; ++h) test::connect(cluster, {count * each + h, count * each + count}, between, 0);
  return cluster;
}

}  // namespace

TEST_CASE("pipedream: replicas that take micro-batches in turn divide their number, whatever it is") {
  const ModelGraph model = chain({2, 1, 1, 3});
  for (int micro_batches = 1; micro_batches <= 13; ++micro_batches)
    for (const int devices : {2, 3, 4, 5}) {
      CAPTURE(micro_batches);
      CAPTURE(devices);
      const Cluster flat = test::star(devices, 1e9, 0);
      const std::string options = "{share: micro_batches, fewer: true}";
      const Planned searched = planned("pipedream", model, flat, options, micro_batches);
      CHECK(searched.predicted.value == planned("brute", model, flat, options, micro_batches).predicted.value);
      CHECK(searched.limit_reason == "the search was exhaustive");
      for (const Stage& stage : searched.plan.stages) CHECK(micro_batches % stage.turns() == 0);
    }
  // Seven micro-batches have no two, three or four replicas, and there are more devices than layers.
  const Planned idle = planned("pipedream", model, test::star(5, 1e9, 0), "{share: micro_batches}", 7);
  CHECK(shape(idle.plan) == "1x1-2x1-1x1");  // The last layer is as long as the two before it.
  CHECK(idle.limit_reason == "the search was exhaustive; 2 devices idle: they make no such plan faster");
  // Servers: two replicas inside and three outside divide six micro-batches together.
  const Planned servers = planned("pipedream", chain({1}), hosts(3, 2, 1e12, 1e12), "{share: micro_batches}", 6);
  CHECK(shape(servers.plan) == "1x6");
  for (int micro_batches = 1; micro_batches <= 12; ++micro_batches)
    for (const Stage& stage :
         planned("pipedream", model, hosts(3, 2, 1e9, 1e8), "{share: micro_batches}", micro_batches).plan.stages)
      CHECK(micro_batches % stage.turns() == 0);
}

TEST_CASE("planners: pipedream and brute agree, also with hosts") {
  const ModelGraph model = chain({2, 1, 1});
  const Cluster flat = test::star(4, 1e9, 0);
  const std::string options = "{micro_batch_size: 4}";
  const Planned by_search = planned("pipedream", model, flat, options),
                by_force = planned("brute", model, flat, options);
  CHECK(by_search.predicted.value == by_force.predicted.value);
  CHECK(by_search.model_limit == by_search.predicted);
  CHECK(by_search.limit_reason == "the search was exhaustive");
  CHECK(by_search.states > 0);
  CHECK(by_search.plan.micro_batches(StageId{0}) == 8);
  CHECK(by_search.predicted.value == doctest::Approx(12).epsilon(1e-6));  // 12 s a sample, four samples on four devices
  CHECK(shape(planned("pipedream", model, test::star(3, 1e9, 0), "{micro_batch_size: 1}").plan) == "1x1-1x1-1x1");
  CHECK(shape(planned("pipedream", model, test::star(3, 1e9, 0), "{micro_batch_size: 2}").plan) == "2x2-1x1");
  const Planned straight = planned("pipedream", model, flat, "{micro_batch_size: 4, straight: true, fewer: true}");
  CHECK(straight.predicted.value == 24);
  for (const Stage& stage : straight.plan.stages) CHECK(stage.leaders.size() == 1);
  CHECK_THROWS_AS(planned("pipedream", model, flat, "{micro_batch_size: 1}"), Infeasible);  // 4 devices, 3 layers

  const Cluster two = hosts(2, 2, 1e12, 1);
  const ModelGraph even = chain({1, 1, 1, 1});
  // A server takes 24 s. 16 bytes of weights over a link of 1 byte a second: (24 + 4 * 16 / 2 / 2) / 2 on both.
  CHECK(planned("pipedream", even, two, options).predicted.value == doctest::Approx(20).epsilon(1e-9));
  const std::string one_level = "{micro_batch_size: 4, machines: [4]}";
  CHECK(planned("pipedream", even, two, one_level).predicted == planned("brute", even, two, options).predicted);
  const std::string quick = "{micro_batch_size: 4, machines: [4], bandwidth: [1 TB/s]}";
  CHECK(planned("pipedream", even, two, quick).predicted.value == doctest::Approx(12).epsilon(1e-9));
  CHECK(test::input_error_of([&] {
          planned("pipedream", model, flat, "{machines: [3]}");
        }).find("the product of the levels is 3, but the plan uses 4 devices") != std::string::npos);
  CHECK(test::input_error_of([&] {
          planned("pipedream", model, flat, "{machines: [2, 2], bandwidth: [1 GB/s]}");
        }).find("1 rate for 2 levels") != std::string::npos);
  CHECK(test::input_error_of([&] { planned("brute", model, flat, "{devices: [d0, d0]}"); }).find("named twice") !=
        std::string::npos);

  Cluster mixed = flat;
  mixed.types.push_back(mixed.types.front());
  mixed.types.front().name = "slow", mixed.types.back().name = "fast";
  mixed.devices[DeviceId{3}].type = DeviceTypeId{1};
  for (const char* name : {"pipedream", "piper", "2bw", "brute"}) {
    CHECK(planned(name, model, mixed, name == std::string("2bw") ? "{}" : options).plan.stage_count() >= 1);
    CHECK(planned(name, model, mixed, "{devices: [d0, d1, d2]}").plan.stage_count() >= 1);
  }
  // Servers of mixed types are refused.
  CHECK_THROWS_AS(planned("pipedream", model, mixed, "{micro_batch_size: 4, machines: [2, 2]}"), Infeasible);
  if (test::all_trials())  // Five million divisions take five seconds; pipedream_search_test.cpp has other limits.
    CHECK_THROWS_AS(planned("brute", chain(std::vector<double>(30, 1)), test::star(12, 1e9, 0), options), Infeasible);
}

TEST_CASE("planners: piper recomputes if memory is short") {
  // Two layers of 3 s and 100 bytes kept; 16 bytes of weights, gradient and optimizer.
  const ModelGraph model = chain({1, 1}, 100);
  const Cluster cluster = test::star(2, 1e9, 0);
  const Planned roomy = planned("piper", model, cluster, "{memory: 1 kB}");
  CHECK(roomy.predicted.value == doctest::Approx(3).epsilon(1e-6));
  CHECK_FALSE(roomy.plan.stages[StageId{0}].shape.recomputes_all());
  CHECK(roomy.memory.value == 2 * 100 + 16);
  CHECK(roomy.model_limit == roomy.predicted);
  // The first stage has no input: recomputed it keeps 100 bytes once. The second keeps 100 bytes either way.
  const Planned tight = planned("piper", model, cluster, "{memory: 150 B}");
  CHECK(tight.plan.stages[StageId{0}].shape.recomputes_all());
  CHECK_FALSE(tight.plan.stages[StageId{1}].shape.recomputes_all());
  CHECK(tight.predicted.value == doctest::Approx(4).epsilon(1e-6));
  CHECK(tight.memory.value == 116);
  CHECK_THROWS_AS(planned("piper", model, cluster, "{memory: 150 B, recompute: none}"), Infeasible);
  CHECK_THROWS_AS(planned("piper", model, cluster, "{memory: 100 B}"), Infeasible);
}

TEST_CASE("planners: 2bw chooses width where weights are cheap to exchange, depth where memory is short") {
  ModelGraph model = chain({1, 1, 1, 1}, 10);
  const Cluster cluster = test::star(4, 1e9, 0);
  const Planned wide = planned("2bw", model, cluster, "{largest_micro_batch: 1}");
  CHECK(shape(wide.plan) == "4x4");
  CHECK(wide.plan.mini_batch == 32);
  CHECK(wide.predicted.value == 12);
  CHECK(wide.memory.value == 4 * (2 * 4 + 4 + 8 + 10));
  const Planned deep = planned("2bw", model, cluster, "{largest_micro_batch: 1, memory: 70 B}");
  CHECK(deep.plan.stage_count() > 1);
  CHECK(deep.memory.value <= 70);
  CHECK(planned("2bw", model, cluster, "{batch: 64}").plan.mini_batch == 64);
  CHECK_THROWS_AS(planned("2bw", model, cluster, "{batch: 7}"), Infeasible);
  CHECK_THROWS_AS(planned("2bw", model, cluster, "{memory: 10 B}"), Infeasible);
  // No more stages than micro-batches: two versions of the weights are not enough else (section 3.1).
  CHECK(planned("2bw", model, cluster, "{memory: 200 B}", 2).plan.stage_count() <= 2);
}

}  // namespace stagecraft::chain_planners_test
