#include "sim/schedule/builder.hpp"

#include <doctest/doctest.h>

#include "tests/support/checked.hpp"
#include "tests/support/schedules.hpp"

namespace stagecraft::builder_test {
using Rows = std::vector<std::string>;
using test::build;
using test::rows_of;
using test::schedule_from;

TEST_CASE("iterations repeat an order, with an update after the last backward of each stage") {
  const Plan plan = chain_plan(2, 1, 2);
  const Schedule one = schedule_from({"0F0 1F0 1B0 0B0 0F1 1F1 1I1 0B1 1W1"});
  CHECK(rows_of(complete(one, plan, 2)) ==
        Rows{"0F0 1F0 1B0 0B0 0F1 1F1 1I1 0B1 0U0 1W1 1U0 0F2 1F2 1B2 0B2 0F3 1F3 1I3 0B3 0U1 1W3 1U1"});
  CHECK(complete(complete(one, plan, 1), plan, 2) == complete(one, plan, 2));  // updates are not doubled
}

TEST_CASE("stages that recompute do so just before each backward") {
  Plan plan = chain_plan(2, 2, 2);
  plan.stages[StageId{1}].shape.recomputation = Recomputation::Full;
  CHECK(rows_of(build("1f1b", plan)) == Rows{"0F0 0F1 0B0 0B1 0U0", "1F0 1R0 1B0 1F1 1R1 1B1 1U0"});
  CHECK(rows_of(complete(schedule_from({"0F0 0F1 0B0 0B1", "1F0 1I0 1W0 1F1 1I1 1W1"}), plan, 1)) ==
        Rows{"0F0 0F1 0B0 0B1 0U0", "1F0 1R0 1I0 1W0 1F1 1R1 1I1 1W1 1U0"});
}

TEST_CASE("ops that run as one stay together, with recomputation before them and updates after them") {
  Plan plan = chain_plan(2, 1, 2);
  CHECK(rows_of(complete(schedule_from({"0F0 1F0 0F1+ 1B0 1F1 1B1+ 0B0 0B1"}), plan, 1)) ==
        Rows{"0F0 1F0 0F1+ 1B0 1F1 1B1+ 0B0 1U0 0B1 0U0"});
  plan.stages[StageId{0}].shape.recomputation = plan.stages[StageId{1}].shape.recomputation = Recomputation::Full;
  CHECK(rows_of(complete(schedule_from({"0F0 1F0 0F1+ 1B0 1F1 1B1+ 0B0 0B1"}), plan, 1)) ==
        Rows{"0F0 1F0 1R0 0F1+ 1B0 1F1 1R1 0R0 1B1+ 0B0 1U0 0R1 0B1 0U0"});
}

TEST_CASE("an order that already recomputes does not recompute twice") {
  Plan plan = chain_plan(1, 1, 2);
  plan.stages[StageId{0}].shape.recomputation = Recomputation::Full;
  CHECK(rows_of(complete(schedule_from({"0F0 0R0 0B0 0F1 0B1"}), plan, 1)) == Rows{"0F0 0R0 0B0 0F1 0R1 0B1 0U0"});
}

TEST_CASE("a device has one stage unless nothing is trained") {
  const Plan plan = chain_plan(4, 2, 4);
  for (const char* name : {"gpipe", "1f1b", "2bw", "pipedream", "graph"}) {
    CAPTURE(name);
    CHECK(test::input_error_of([&] { build(name, plan); }).find("device 0 has stages 0 and 2") != std::string::npos);
  }
  CHECK_NOTHROW(build("inference", plan));
}

TEST_CASE("an order that counts micro-batches needs equal sizes") {
  Plan plan = chain_plan(2, 2, 4);
  plan.stages[StageId{1}].micro_batch_size = 2;
  for (const char* name : {"gpipe", "1f1b", "2bw", "pipedream", "inference"}) {
    CAPTURE(name);
    CHECK(test::input_error_of([&] { build(name, plan); }).find("use the schedule 'graph'") != std::string::npos);
  }
  CHECK_NOTHROW(build("graph", plan));
  plan.stages[StageId{1}].micro_batch_size = 1, plan.stages[StageId{1}].group = 2;
  CHECK_THROWS_AS(build("1f1b", plan), InputError);
}

TEST_CASE("2bw needs as many micro-batches as a stage runs ahead, less one") {
  for (const int p : {2, 3, 4, 7}) {
    CHECK_NOTHROW(build("2bw", chain_plan(p, p, p - 1), 3));
    if (p == 2) continue;
    try {
      build("2bw", chain_plan(p, p, p - 2), 3);
      FAIL("too few micro-batches went unnoticed");
    } catch (const Infeasible& error) {
      CHECK(error.code() == "micro-batches");
      CHECK(std::string(error.what()).find("at least " + std::to_string(p - 1)) != std::string::npos);
    }
  }
}

TEST_CASE("pipedream takes any number of micro-batches") {
  for (const int p : {1, 2, 5})
    for (const int m : {1, 2, 3}) CHECK_NOTHROW(build("pipedream", chain_plan(p, p, m), 3));
}

TEST_CASE("an unknown schedule is refused with a suggestion") {
  CHECK(test::input_error_of([] { build("1fb1", chain_plan(1, 1, 1)); }).find("1f1b") != std::string::npos);
}

}  // namespace stagecraft::builder_test
