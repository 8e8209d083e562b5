// Small orders of schedules with a placement, as drawn in the papers and produced by the released systems.

#include <doctest/doctest.h>

#include "sim/schedule/validate.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/schedules.hpp"

namespace stagecraft::placed_grids_test {
using Rows = std::vector<std::string>;

namespace {

Schedule with(std::string_view name, int p, int v, int m, const std::string& options = "{}") {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", name);
  const Plan plan = plan_for(def, p, v, m);
  const config::Value map = def.fields ? test::checked(options, *def.fields) : config::Value{};
  const StageCosts costs = uniform_costs(plan, test::times(1, 2));
  Schedule result =
      build_schedule(def, {.plan = plan, .costs = costs, .options = read_options(def, def.fields ? &map : nullptr)});
  CHECK(validate(result, plan, {}).empty());
  for (auto& row : result.ranks) std::erase_if(row, [](const Op& op) { return op.kind == OpKind::Update; });
  return result;
}

Rows rows(std::string_view name, int p, int v, int m, const std::string& options = "{}") {
  return test::rows_of(with(name, p, v, m, options));
}

}  // namespace

TEST_CASE("interleaved orders equal the ones by hand, also with each forward next to a backward") {
  CHECK(rows("interleaved", 2, 2, 2) == Rows{"0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1", "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1"});
  CHECK(rows("interleaved", 2, 2, 2, "{overlap_moe: true}") ==
        Rows{"0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1", "1F0 1F1 3F0 3F1+ 3B0 3B1 1B0 1B1"});
}

TEST_CASE("interleaved: groups equal PyTorch's if it has one, and are larger if a short one would remain") {
  CHECK(rows("interleaved", 2, 2, 5) == rows("interleaved", 2, 2, 5, "{group: 3}"));  // 3 + 2, not 2 + 2 + 1
  CHECK(rows("interleaved", 4, 2, 10) == rows("interleaved", 4, 2, 10, "{group: 5}"));
  CHECK(rows("interleaved", 4, 2, 3) == rows("interleaved", 4, 2, 3, "{group: 3}"));
  CHECK_THROWS_AS(with("interleaved", 4, 2, 9, "{group: 4}"), Infeasible);
  CHECK_THROWS_AS(with("interleaved", 4, 2, 8, "{group: 2}"), Infeasible);
  for (const char* name : {"interleaved", "interleaved-zb"}) {  // Megatron takes groups from p to m.
    CHECK_NOTHROW(with(name, 4, 2, 8, "{group: 8}"));
    CHECK_THROWS_AS(with(name, 4, 2, 8, "{group: 9}"), Infeasible);
  }
}

TEST_CASE("breadth first runs backwards in order or in reverse") {
  CHECK(rows("looped-bfs", 2, 2, 2) == Rows{"0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1", "1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1"});
  CHECK(rows("looped-bfs", 2, 2, 2, "{backward: reverse}") ==
        Rows{"0F0 0F1 2F0 2F1 2B1 2B0 0B1 0B0", "1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0"});
}

TEST_CASE("zero bubble orders equal the ones by hand") {
  CHECK(rows("zb-h1", 2, 1, 3) == Rows{"0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2", "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2"});
  CHECK(rows("zb-h1-light", 2, 1, 4) ==
        Rows{"0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3", "1F0 1I0 1F1 1B1 1F2 1B2 1F3 1I3 1W3 1W0"});
  CHECK(rows("zb-h2", 2, 1, 4) ==
        Rows{"0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3", "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3"});
}

TEST_CASE("torchgpipe runs backwards in reverse, and recomputes all but the last") {
  CHECK(rows("gpipe", 2, 1, 3, "{backward: reverse, keep_last: true}") ==
        Rows{"0F0 0F1 0F2 0B2 0R1 0B1 0R0 0B0", "1F0 1F1 1F2 1B2 1R1 1B1 1R0 1B0"});
  Plan plan = chain_plan(2, 2, 3);
  plan.stages[StageId{0}].shape.recomputation = Recomputation::Full;
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", "gpipe");
  const config::Value map = test::checked("{keep_last: true}", *def.fields);
  const StageCosts costs = uniform_costs(plan, test::times(1, 1));
  CHECK_THROWS_AS(build_schedule(def, {.plan = plan, .costs = costs, .options = read_options(def, &map)}), InputError);
}

TEST_CASE("chimera and gems run in both directions") {
  CHECK(rows("chimera", 2, 2, 2) == Rows{"0F0 3F1 3B1 0B0", "2F1 1F0 1B0 2B1"});
  CHECK(rows("gems", 2, 2, 3) == Rows{"0F0 3F1 0B0 3B1 0F2 0B2", "1F0 2F1 1B0 2B1 1F2 1B2"});
}

TEST_CASE("chimera keeps every micro-batch, also beyond two groups each way on eight ranks") {
  // The released generator runs 20 of these 32.
  const Schedule schedule = with("chimera", 8, 2, 32);
  for (const auto& row : schedule.device_rows()) CHECK(row.size() == 2 * 32);
}

TEST_CASE("dualpipev on two ranks equals the order by hand") {
  CHECK(rows("dualpipev", 2, 2, 4) ==
        Rows{"0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3+ 3B1 3F2+ 0B0 3B2 3F3+ 0B1 3B3 0I2 0W2 0I3 0W3",
             "1F0 2F0 1F1 2F1 1F2 2B0 2F2+ 1B0 1F3+ 2B1 2F3+ 1B1 2B2 1B2 2I3 1I3 2W3 1W3"});
}

TEST_CASE("backwards of sequence slices run from last to first") {
  CHECK(rows("seq1f1b", 2, 1, 4, "{slices: 2}") ==
        Rows{"0F0 0F1 0F2 0B1 0F3 0B0 0B3 0B2", "1F0 1F1 1B1 1F2 1B0 1F3 1B3 1B2"});
}

TEST_CASE("spp-pe runs four micro-batches further ahead for every later stage") {
  CHECK(rows("spp-pe", 2, 1, 5) ==
        Rows{"0F0 0F1 0F2 0F3 0B0 0F4 0B1 0B2 0B3 0B4", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 1F4 1B4"});
}

TEST_CASE("v-adaptive runs further ahead with more memory") {
  // zb-v keeps 4 chunks on each rank; so does v-min on two ranks, so less memory is too little.
  CHECK(rows("v-adaptive", 2, 2, 2) == rows("v-adaptive", 2, 2, 2, "{memory: 7}"));
  for (const auto& row : with("v-adaptive", 2, 2, 2).ranks) CHECK(row.size() == 3 * 2 * 2);
  CHECK_THROWS_AS(with("v-adaptive", 2, 2, 4, "{memory: 0.9}"), Infeasible);
  CHECK_THROWS_AS(with("v-adaptive", 8, 2, 16, "{memory: 0.4}"), Infeasible);  // v-min: 8 of 16 chunks
  CHECK(with("v-adaptive", 8, 2, 16, "{memory: 0.5}").device_count() == 8);
}

TEST_CASE("a schedule refuses what it cannot do, with its reason") {
  CHECK_THROWS_AS(with("dualpipe", 3, 2, 8), Infeasible);
  CHECK_THROWS_AS(with("dualpipe", 4, 2, 9), Infeasible);
  CHECK_THROWS_AS(with("dualpipev", 4, 2, 7), Infeasible);
  CHECK_THROWS_AS(with("chimera", 3, 2, 6), Infeasible);
  CHECK_THROWS_AS(with("gems", 2, 2, 1), Infeasible);
  CHECK_THROWS_AS(with("zb-1p", 4, 1, 8, "{memory: 0.1}"), Infeasible);
  CHECK_THROWS_AS(with("zb-v", 4, 4, 8), InputError);
  CHECK_THROWS_AS(with("hanayo", 4, 3, 8), InputError);
}

TEST_CASE("a plan with another placement is refused") {
  const Plan loop = chain_plan(4, 2, 4);
  CHECK(test::input_error_of([&] { test::build("zb-v", loop); }).find("plan.placement: v") != std::string::npos);
  CHECK(test::input_error_of([&] {
          test::build("interleaved", chain_plan(4, 4, 4));
        }).find("plan.placement: auto, or loop") != std::string::npos);
  CHECK(test::input_error_of([&] { test::build("chimera", loop); }).find("opposite directions") != std::string::npos);
  CHECK(test::input_error_of([&] {
          test::build("zb-h1", test::dag_plan(2, 2, {{1, 0}}));
        }).find("stage 1 feeds stage 0") != std::string::npos);
}

}  // namespace stagecraft::placed_grids_test
