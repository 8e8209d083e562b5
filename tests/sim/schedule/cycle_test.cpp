// Orders that deadlock, and the cycle that the error names.

#include <doctest/doctest.h>

#include "sim/core/random.hpp"
#include "sim/schedule/validate.hpp"
#include "tests/support/schedules.hpp"

namespace stagecraft::cycle_test {
using test::schedule_from;

namespace {

ScheduleProblem only_problem(const std::vector<std::string>& rows, const Plan& plan) {
  const auto problems = validate(schedule_from(rows), plan, {});
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().code == "cycle");
  CHECK(problems.front().level == 4);
  return problems.front();
}

/// Runs every op that can run until none can: the simplest check for a deadlock.
bool can_end(const Schedule& schedule, const Plan& plan) {
  std::vector<std::size_t> head(schedule.device_count(), 0);
  std::vector<Op> done;
  const auto has = [&](const Op& op) { return std::find(done.begin(), done.end(), op) != done.end(); };
  const auto ready = [&](const Op& op) {
    for (const StageEdge& e : plan.edges) {
      if (op.kind == OpKind::Forward && e.to == op.stage && !has({OpKind::Forward, false, e.from, op.micro}))
        return false;
      if (op.kind == OpKind::Backward && e.from == op.stage && !has({OpKind::Backward, false, e.to, op.micro}))
        return false;
    }
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t d = 0; d < head.size(); ++d)
      while (head[d] < schedule.row(DeviceId{d}).size() && ready(schedule.row(DeviceId{d})[head[d]])) {
        done.push_back(schedule.row(DeviceId{d})[head[d]++]);
        moved = true;
      }
  }
  return done.size() == schedule.op_count();
}

}  // namespace

TEST_CASE("two ranks that wait for each other are a cycle") {
  const ScheduleProblem p = only_problem({"0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0"}, chain_plan(2, 2, 2));
  CHECK(p.rank == 0);
  CHECK(p.column == 1);
  CHECK(p.op == "0B0");
  CHECK(p.message ==
        "0B0 (rank 0) waits for 1B0 (rank 1), which comes after 1F1; 1F1 (rank 1) waits for 0F1 (rank 0), which comes "
        "after 0B0");
}

TEST_CASE("the shortest cycle is named when there are several") {
  // Ranks 0, 1 and 2 wait in a cycle of three: rank 2 runs stage 3 first, whose input, stage 4, comes last on rank 0.
  Plan plan = test::dag_plan(7, 1, {{0, 1}, {1, 2}, {4, 3}, {5, 6}});
  const int rank_of[] = {0, 1, 2, 2, 0, 3, 4};
  for (std::size_t s = 0; s < 7; ++s) plan.stages[StageId{s}].place_on({DeviceId{rank_of[s]}});
  std::vector<std::string> rows = {"0F0 0B0 4F0 4B0", "1F0 1B0", "3F0 3B0 2F0 2B0", "5F0 5B0", "6F0 6B0"};
  const ScheduleProblem three = only_problem(rows, plan);
  CHECK(three.message ==
        "0B0 (rank 0) waits for 1B0 (rank 1); 1B0 (rank 1) waits for 2B0 (rank 2), which comes after 3F0; 3F0 (rank 2) "
        "waits for 4F0 (rank 0), which comes after 0B0");
  // Two more ranks wait for each other, and rank 5 for one of the circle: the circle of two is the one to mend first.
  plan.stages.resize(9, plan.stages.back());
  plan.stages[StageId{7}].place_on({DeviceId{3}}), plan.stages[StageId{8}].place_on({DeviceId{4}});
  plan.edges.push_back({StageId{8}, StageId{7}, {}});
  rows[3] = "7F0 7B0 5F0 5B0", rows[4] = "6F0 6B0 8F0 8B0";
  const ScheduleProblem two = only_problem(rows, plan);
  CHECK(two.rank == 3);
  CHECK(two.op == "7F0");
  const GlobalOrder order = global_order(schedule_from(rows), plan, 1);
  using Blocked = std::vector<std::pair<DeviceId, int>>;
  CHECK(order.blocked == Blocked{{DeviceId{3}, 0}, {DeviceId{4}, 0}});
}

TEST_CASE("a rank can wait for itself") {
  const ScheduleProblem p = only_problem({"1F0 0F0 0B0 1B0"}, chain_plan(2, 1, 1));
  CHECK(p.rank == 0);
  CHECK(p.column == 0);
  CHECK(p.message.find("1F0 (rank 0) waits for 0F0 (rank 0), which comes after 1F0") != std::string::npos);
  // Ops that run as one cannot feed each other.
  only_problem({"0F0+ 1F0 1B0 0B0"}, chain_plan(2, 1, 1));
}

TEST_CASE("ops that run as one wait for the inputs of all") {
  const Plan shared = chain_plan(2, 2, 2);
  CHECK(validate(schedule_from({"0F0 0F1+ 0B0 0B1", "1F0 1B0 1F1 1B1"}), shared, {}).empty());
  // 0F1 alone could run, but runs with 0B0, which needs 1F1 first.
  const ScheduleProblem p = only_problem({"0F0 0F1+ 0B0 0B1", "1F0 1F1 1B0 1B1"}, shared);
  CHECK(p.rank == 0);
  CHECK(p.column == 1);
}

TEST_CASE("replicas meet at an update") {
  Plan plan = chain_plan(2, 2, 4);
  plan.stages[StageId{0}].micro_batch_size = plan.stages[StageId{1}].micro_batch_size = 2;
  plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{2}});
  plan.reductions = derive_reductions(plan);
  CHECK(
      validate(schedule_from({"0F0 0F1 0B0 0B1 0U0", "1F0 1B0 1F1 1B1 1U0", "1F0 1F1 1B1 1B0 1U0"}), plan, {}).empty());
}

TEST_CASE("the order of turns is complete, and every op comes after the ops that it needs") {
  const Plan plan = test::dag_plan(4, 3, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  const Schedule schedule = test::build("graph", plan, 2);
  const GlobalOrder order = global_order(schedule, plan, 2);
  CHECK(order.cycle.empty());
  CHECK(order.devices.size() == schedule.op_count());
  // One op a turn: the first turn is that of every source rank, smallest first.
  CHECK(order.devices.front() == DeviceId{0});
}

TEST_CASE("random orders have a cycle exactly if a plain simulation gets stuck") {
  Rng rng(5, "orders");
  int ended = 0, blocked = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const int p = rng.integer(2, 4), m = rng.integer(1, 3);
    const Plan plan = chain_plan(p, p, m);
    Schedule schedule;
    schedule.ranks.resize(static_cast<std::size_t>(p));
    for (int s = 0; s < p; ++s) {
      auto& row = schedule.ranks[RankId{s}];
      int forward = 0, backward = 0;
      while (backward < m)
        if (forward < m && (forward == backward || rng.integer(0, 1) == 0))
          row.push_back({OpKind::Forward, false, StageId{s}, forward++});
        else
          row.push_back({OpKind::Backward, false, StageId{s}, backward++});
    }
    const bool good = can_end(schedule, plan);
    CHECK(validate(schedule, plan, {}).empty() == good);
    (good ? ended : blocked)++;
  }
  CHECK(ended > 50);
  CHECK(blocked > 50);
}

}  // namespace stagecraft::cycle_test
