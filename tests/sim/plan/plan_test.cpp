#include "sim/plan/plan.hpp"

#include <doctest/doctest.h>

#include "sim/core/diagnostic.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::plan_test {
namespace {

void edge(Plan& plan, int from, int to) { plan.edges.push_back({StageId{from}, StageId{to}, {}}); }

std::string problems_of(const Plan& plan) {
  return test::input_error_of([&] { check_plan(plan); });
}

bool says(const Plan& plan, const std::string& words) { return problems_of(plan).find(words) != std::string::npos; }

/// Two branches of two stages that meet: 0 -> 1 -> 4, 2 -> 3 -> 4.
Plan two_branches() {
  Plan plan = chain_plan(5, 5, 8);
  plan.edges.clear();
  edge(plan, 0, 1), edge(plan, 1, 4), edge(plan, 2, 3), edge(plan, 3, 4);
  return plan;
}

}  // namespace

TEST_CASE("chain_plan deals stages to ranks in turn") {
  const Plan plan = chain_plan(4, 2, 6);
  CHECK(plan.mini_batch == 6);
  CHECK(plan.edges.size() == 3);
  CHECK(plan.device_count() == 2);
  CHECK(plan.stages[StageId{3}].leaders == std::vector<DeviceId>{DeviceId{1}});
  CHECK(problems_of(plan) == "nothing");
  CHECK(to_text(plan).find("4 stages, 6 samples") == 0);
}

TEST_CASE("make_sequential orders the stages without an order, and adds no edge twice") {
  Plan plan = two_branches();
  make_sequential(plan);
  CHECK(plan.edges.size() == 5);
  CHECK(plan.edges.back().from == StageId{1});
  CHECK(plan.edges.back().to == StageId{2});
  CHECK(depth_to_sink(plan.graph()).front() == 5);
  make_sequential(plan);
  CHECK(plan.edges.size() == 5);
}

TEST_CASE("a cycle of stages is refused with its stages") {
  Plan plan = two_branches();
  edge(plan, 4, 0);
  CHECK(says(plan, "'s0' -> 's1' -> 's4' -> 's0'"));
  CHECK_THROWS_AS(make_sequential(plan), InputError);
}

TEST_CASE("micro-batch sizes must nest, divide the mini-batch and divide among the replicas") {
  Plan plan = chain_plan(2, 2, 12);
  plan.stages[StageId{0}].micro_batch_size = 4;
  plan.stages[StageId{1}].micro_batch_size = 2;
  CHECK(problems_of(plan) == "nothing");
  plan.stages[StageId{1}].micro_batch_size = 6;
  CHECK(says(plan, "micro-batches of 4 and 6 samples do not nest"));
  plan.stages[StageId{1}].micro_batch_size = 2;
  plan.stages[StageId{1}].group = 3;
  CHECK(says(plan, "groups of 4 and 6 samples do not nest"));
  plan.stages[StageId{1}].group = 1;
  plan.mini_batch = 10;
  CHECK(says(plan, "micro-batch of 4 samples does not divide the mini-batch of 10"));
  plan.mini_batch = 12;
  plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{2}, DeviceId{3}});
  CHECK(says(plan, "2 samples cannot be divided among 3 replicas"));
  plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{1}});
  CHECK(says(plan, "device 1 is named twice"));
}

TEST_CASE("all problems of a plan are reported at once") {
  Plan plan = chain_plan(2, 2, 3);
  plan.stages[StageId{0}].micro_batch_size = 2;
  plan.stages[StageId{1}].place_on({});
  CHECK(says(plan, "does not divide"));
  CHECK(says(plan, "has no device"));
  plan.stages[StageId{0}].micro_batch_size = 0;
  CHECK(says(plan, "at least 1"));
  CHECK(says(Plan{}, "no stages"));
}

}  // namespace stagecraft::plan_test
