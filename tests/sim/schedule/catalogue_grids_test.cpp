// The orders of the catalog, written by hand from the figures of the papers.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/schedule/in_flight.hpp"
#include "sim/schedule/validate.hpp"
#include "tests/support/schedules.hpp"

namespace stagecraft::catalogue_grids_test {
using Rows = std::vector<std::string>;
using test::build;
using test::rows_of;

TEST_CASE("gpipe runs all forwards, then all backwards") {
  CHECK(rows_of(build("gpipe", chain_plan(2, 2, 3))) ==
        Rows{"0F0 0F1 0F2 0B0 0B1 0B2 0U0", "1F0 1F1 1F2 1B0 1B1 1B2 1U0"});
  CHECK(rows_of(build("gpipe", chain_plan(1, 1, 2), 2)) == Rows{"0F0 0F1 0B0 0B1 0U0 0F2 0F3 0B2 0B3 0U1"});
}

TEST_CASE("1f1b alternates forwards and backwards after its warm-up") {
  CHECK(rows_of(build("1f1b", chain_plan(4, 4, 5))) ==
        Rows{"0F0 0F1 0F2 0F3 0B0 0F4 0B1 0B2 0B3 0B4 0U0", "1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1B3 1B4 1U0",
             "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2B4 2U0", "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3U0"});
  // Fewer micro-batches than stages: the warm-up ends with them, and the next iteration warms up again.
  CHECK(rows_of(build("1f1b", chain_plan(3, 3, 2), 2)) == Rows{"0F0 0F1 0B0 0B1 0U0 0F2 0F3 0B2 0B3 0U1",
                                                               "1F0 1F1 1B0 1B1 1U0 1F2 1F3 1B2 1B3 1U1",
                                                               "2F0 2B0 2F1 2B1 2U0 2F2 2B2 2F3 2B3 2U1"});
}

TEST_CASE("2bw continues through the update without a drain") {
  CHECK(rows_of(build("2bw", chain_plan(3, 3, 2), 3)) ==
        Rows{"0F0 0F1 0F2 0B0 0F3 0B1 0U0 0F4 0B2 0F5 0B3 0U1 0B4 0B5 0U2",
             "1F0 1F1 1B0 1F2 1B1 1U0 1F3 1B2 1F4 1B3 1U1 1F5 1B4 1B5 1U2",
             "2F0 2B0 2F1 2B1 2U0 2F2 2B2 2F3 2B3 2U1 2F4 2B4 2F5 2B5 2U2"});
}

TEST_CASE("pipedream continues through every update, with any number of micro-batches") {
  CHECK(rows_of(build("pipedream", chain_plan(3, 3, 1), 4)) == Rows{"0F0 0F1 0F2 0B0 0U0 0F3 0B1 0U1 0B2 0U2 0B3 0U3",
                                                                    "1F0 1F1 1B0 1U0 1F2 1B1 1U1 1F3 1B2 1U2 1B3 1U3",
                                                                    "2F0 2B0 2U0 2F1 2B1 2U1 2F2 2B2 2U2 2F3 2B3 2U3"});
  for (const int m : {2, 3, 5})  // Where both schedules exist, their orders are equal.
    CHECK(build("pipedream", chain_plan(3, 3, m), 3) == build("2bw", chain_plan(3, 3, m), 3));
  CHECK(build("pipedream", chain_plan(3, 3, 2), 3).drain_every == 0);
  CHECK(build("1f1b", chain_plan(3, 3, 2), 3).drain_every == 1);
}

TEST_CASE("a schedule drains every N iterations; the iterations that remain are a shorter stretch") {
  const Plan plan = chain_plan(2, 2, 2);
  CHECK(rows_of(test::draining("pipedream", plan, 3, 2)) ==
        Rows{"0F0 0F1 0B0 0F2 0B1 0U0 0F3 0B2 0B3 0U1 0F4 0F5 0B4 0B5 0U2",
             "1F0 1B0 1F1 1B1 1U0 1F2 1B2 1F3 1B3 1U1 1F4 1B4 1F5 1B5 1U2"});
  CHECK(rows_of(test::draining("pipedream", plan, 3, 1)) == rows_of(build("1f1b", plan, 3)));
  for (const char* name : {"pipedream", "2bw"}) {
    CHECK(test::draining(name, plan, 3, 1).drain_every == 1);
    CHECK(rows_of(test::draining(name, plan, 3, 0)) == rows_of(build(name, plan, 3)));
    CHECK(rows_of(test::draining(name, plan, 3, 3)) == rows_of(build(name, plan, 3)));
    CHECK(rows_of(test::draining(name, plan, 3, 50)) == rows_of(build(name, plan, 3)));
    for (const int every : {1, 2, 3, 4, 7})
      CHECK(validate(test::draining(name, plan, 7, every), plan, {.iterations = 7}).empty());
  }
  Plan recomputed = chain_plan(1, 1, 2);
  recomputed.stages[StageId{0}].shape.recomputation = Recomputation::Full;
  CHECK(rows_of(test::draining("pipedream", recomputed, 3, 2)) ==
        Rows{"0F0 0R0 0B0 0F1 0R1 0B1 0U0 0F2 0R2 0B2 0F3 0R3 0B3 0U1 0F4 0R4 0B4 0F5 0R5 0B5 0U2"});
}

TEST_CASE("inference runs forwards alone") {
  CHECK(rows_of(build("inference", chain_plan(2, 2, 3))) == Rows{"0F0 0F1 0F2", "1F0 1F1 1F2"});
  CHECK(rows_of(build("inference", chain_plan(4, 2, 2))) == Rows{"0F0 0F1 2F0 2F1", "1F0 1F1 3F0 3F1"});
}

TEST_CASE("graph is 1f1b on a chain, and runs ahead by the longest path to the sink on a graph") {
  for (const int p : {1, 2, 3, 5, 8})
    for (const int m : {1, 2, 4, 9})
      CHECK(build("graph", chain_plan(p, p, m), 2) == build("1f1b", chain_plan(p, p, m), 2));
  // 0 -> 1 -> 3 and 2 -> 3.
  const Plan plan = test::dag_plan(4, 4, {{0, 1}, {1, 3}, {2, 3}});
  CHECK(rows_of(build("graph", plan)) ==
        Rows{"0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3 0U0", "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3 1U0",
             "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2B3 2U0", "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3U0"});
}

TEST_CASE("graph runs groups of micro-batches and unequal sizes") {
  Plan plan = chain_plan(2, 2, 8);
  plan.stages[StageId{0}].micro_batch_size = 1, plan.stages[StageId{0}].group = 2;
  plan.stages[StageId{1}].micro_batch_size = 2;
  CHECK(in_flight_samples(plan) == IdVector<StageId, int>{4, 2});
  CHECK(rows_of(build("graph", plan)) == Rows{"0F0 0F1 0F2 0F3 0B0 0B1 0F4 0F5 0B2 0B3 0F6 0F7 0B4 0B5 0B6 0B7 0U0",
                                              "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 1U0"});
}

TEST_CASE("samples in flight follow the rule, with its rounding and its cap") {
  Plan plan = chain_plan(3, 3, 16);
  for (Stage& stage : plan.stages) stage.micro_batch_size = 4;
  CHECK(in_flight_samples(plan) == IdVector<StageId, int>{12, 8, 4});  // GraphPipe, figure 5 (a)
  plan.stages[StageId{0}].micro_batch_size = 1, plan.stages[StageId{1}].micro_batch_size = 2;
  CHECK(in_flight_samples(plan) == IdVector<StageId, int>{10, 8, 4});  // figure 5 (b)
  plan.mini_batch = 8;
  CHECK(in_flight_samples(plan) == IdVector<StageId, int>{8, 8, 4});
  plan.mini_batch = 32;
  CHECK(in_flight_samples(plan, {0, 3}) ==
        IdVector<StageId, int>{14, 12, 4});  // 4 + 4 + 3 = 11, in twos 12; then 12 + 2
  Plan larger_first = chain_plan(2, 2, 32);
  larger_first.stages[StageId{0}].micro_batch_size = 8, larger_first.stages[StageId{1}].micro_batch_size = 4;
  CHECK(in_flight_samples(larger_first) == IdVector<StageId, int>{16, 4});  // 4 + 4 + 2 (8 - 4)
}

TEST_CASE("a large micro-batch before a deep pipeline of small ones counts in samples in flight") {
  Plan plan = chain_plan(4, 4, 32);
  plan.stages[StageId{0}].micro_batch_size = 4;
  CHECK(in_flight_samples(plan) == IdVector<StageId, int>{12, 3, 2, 1});  // 3 + 1 + 2 (4 - 1) = 10, in fours 12
}

TEST_CASE("a stage on several devices gives each the same order") {
  Plan plan = chain_plan(2, 2, 4);
  plan.stages[StageId{0}].micro_batch_size = plan.stages[StageId{1}].micro_batch_size = 2;
  plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{3}});
  CHECK(rows_of(build("1f1b", plan)) == Rows{"0F0 0F1 0B0 0B1 0U0", "1F0 1B0 1F1 1B1 1U0", "", "1F0 1B0 1F1 1B1 1U0"});
}

TEST_CASE("every entry names its source, and its weights and options exist once") {
  const auto entries = schedules::catalog();
  CHECK(entries.size() >= 29);
  auto names = names_of(entries);
  for (const ScheduleDef* def : entries) {
    CAPTURE(def->name);
    CHECK_FALSE(def->summary.empty());
    CHECK_FALSE(def->source.empty());
    CHECK((def->stage != nullptr) + (def->rank != nullptr) + (def->whole != nullptr) == 1);
    CHECK((def->placement != Placement::Any || def->rank == nullptr));
  }
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

}  // namespace stagecraft::catalogue_grids_test
