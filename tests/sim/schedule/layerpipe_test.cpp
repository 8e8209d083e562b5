// The modulo order of tasks, computed by hand.

#include <doctest/doctest.h>

#include "sim/schedule/validate.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/schedules.hpp"

namespace stagecraft::layerpipe_test {
using Rows = std::vector<std::string>;

namespace {

Rows rows(const Plan& plan, const std::string& options, int iterations = 1) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", "layerpipe");
  const config::Value map = test::checked(options, *def.fields);
  const StageCosts costs = uniform_costs(plan, test::times(1, 0));
  const Schedule result =
      build_schedule(def, {.plan = plan, .costs = costs, .iterations = iterations, .options = read_options(def, &map)});
  CHECK(validate(result, plan, {.iterations = iterations, .trains = false}).empty());
  CHECK(result.drain_every == 0);
  return test::rows_of(result);
}

/// A plan with stages 0 and 3 on one device, 1 and 2 on another.
Plan round_trip() {
  Plan plan = chain_plan(4, 2, 3);
  plan.stages[StageId{2}].place_on({DeviceId{1}});
  plan.stages[StageId{3}].place_on({DeviceId{0}});
  return plan;
}

}  // namespace

TEST_CASE("layerpipe: a task runs one interval, and the slack, after the task of another device that it needs") {
  CHECK(rows(round_trip(), "{slack: 0}") == Rows{"0F0 0F1 0F2 3F0 3F1 3F2", "1F0 2F0 1F1 2F1 1F2 2F2"});
  CHECK(rows(chain_plan(3, 2, 4), "{slack: 0}") == Rows{"0F0 0F1 0F2 2F0 0F3 2F1 2F2 2F3", "1F0 1F1 1F2 1F3"});
  CHECK(rows(chain_plan(3, 2, 4), "{}") == Rows{"0F0 0F1 0F2 0F3 2F0 2F1 2F2 2F3", "1F0 1F1 1F2 1F3"});
}

TEST_CASE("layerpipe: iterations follow without a drain") {
  Plan plan = round_trip();
  plan.mini_batch = 2;
  CHECK(rows(plan, "{slack: 0}", 2) == Rows{"0F0 0F1 0F2 3F0 0F3 3F1 3F2 3F3", "1F0 2F0 1F1 2F1 1F2 2F2 1F3 2F3"});
}

TEST_CASE("layerpipe: whole stages of a model are refused") {
  Plan plan = chain_plan(2, 2, 2);
  plan.stages[StageId{0}].shape.layers = {LayerId{0}};
  CHECK(test::input_error_of([&] { rows(plan, "{}"); }).find("[write plan: {planner: layerpipe}]") !=
        std::string::npos);
}

TEST_CASE("layerpipe: no schedule of whole stages runs a plan of tasks") {
  Plan plan = chain_plan(2, 2, 2);
  plan.stages[StageId{1}].task = StageTask::InputGradient;
  for (const char* name : {"1f1b", "gpipe", "2bw", "zb-1p"}) {
    CAPTURE(name);
    CHECK(test::input_error_of([&] { test::build(name, plan); }).find("[write schedule: layerpipe") !=
          std::string::npos);
  }
}

}  // namespace stagecraft::layerpipe_test
