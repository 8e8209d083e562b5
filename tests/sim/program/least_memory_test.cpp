// The memory that rows of an order need at least, against the memory of the programs that are lowered from them.

#include "sim/program/least_memory.hpp"

#include <doctest/doctest.h>

#include "tests/support/road.hpp"

namespace stagecraft::least_memory_test {
namespace {

constexpr int kRanks = 4, kMicroBatches = 12;

StageCost sized() {
  StageCost cost = test::times(1, 2);
  cost.memory = {.weights = Bytes{64},
                 .gradients = Bytes{32},
                 .optimizer = Bytes{128},
                 .stash = Bytes{8},
                 .recompute_stash = Bytes{40},
                 .workspace = Bytes{4}};
  cost.entering = Bytes{16};
  return cost;
}

/// Calls visit(definition, plan, costs) for all schedules that train, without and with recomputation. Messages have
/// `bytes`.
template <class Visit>
void for_each_case(double bytes, Visit&& visit) {
  for (const ScheduleDef* def : schedules::catalog()) {
    if (!def->trains || def->tasks || def->vocabulary != VocabularyPasses::None || def->name == "csv") continue;
    for (const Recomputation recomputation : {Recomputation::None, Recomputation::Full}) {
      CAPTURE(def->name);
      Plan plan = test::reduced(test::least_plan(*def, kRanks, kMicroBatches));
      for (StageEdge& edge : plan.edges) edge.bytes = Bytes{bytes};
      for (Stage& stage : plan.stages) stage.shape.recomputation = recomputation;
      visit(*def, plan, uniform_costs(plan, sized()));
    }
  }
}

}  // namespace

TEST_CASE("rows of schedules that flush need the memory of their programs where messages have no bytes") {
  int count = 0;
  for_each_case(0, [&](const ScheduleDef& def, const Plan& plan, const StageCosts& costs) {
    if (!def.flushes) return;
    const Schedule schedule = build_schedule(def, {.plan = plan, .costs = costs, .iterations = 2});
    const Program program = test::lowered(schedule, plan, costs, {.iterations = 2});
    CHECK(least_memory(schedule, plan, costs, 2) == memory_needs(program));
    ++count;
  });
  CHECK(count > 30);
}

TEST_CASE("messages and versions of weights only add to what rows need") {
  for_each_case(5, [&](const ScheduleDef& def, const Plan& plan, const StageCosts& costs) {
    const int iterations = def.flushes ? 1 : 3;
    const Schedule schedule = build_schedule(def, {.plan = plan, .costs = costs, .iterations = iterations});
    const Program program = test::lowered(schedule, plan, costs, {.iterations = iterations}, def.weights);
    const IdVector<DeviceId, Bytes> of_rows = least_memory(schedule, plan, costs, iterations),
                                    needs = memory_needs(program);
    Bytes most_added;
    for (const DeviceId d : needs.ids()) {
      CHECK(of_rows[d] <= needs[d]);
      most_added = std::max(most_added, needs[d] - of_rows[d]);
    }
    CHECK(most_added.value > 0);
  });
}

}  // namespace stagecraft::least_memory_test
