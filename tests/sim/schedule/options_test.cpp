// Options as values: what a map says, the defaults, and when two are equal.

#include <doctest/doctest.h>

#include "tests/support/schedules.hpp"

namespace stagecraft::options_test {
namespace {

ScheduleOptions options(std::string_view schedule, const std::vector<std::string>& sets) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", schedule);
  const std::optional<config::Value> map = options_of(def, sets);
  return read_options(def, map ? &*map : nullptr);
}

}  // namespace

TEST_CASE("options: builder options are read for every schedule that has them") {
  CHECK(options("pipedream", {"drain_every=3"}).drain_every == 3);
  CHECK(options("pipedream", {}).drain_every == 0);
  CHECK(options("pipedream", {"update=micro_batch"}).update_each_micro_batch);
  CHECK(options("interleaved", {"chunks=4"}).placing->chunks.min == 4);
  CHECK_FALSE(options("1f1b", {}).placing.has_value());
  CHECK_THROWS_AS(options("hanayo", {"chunks=3"}), InputError);
}

TEST_CASE("options: equality compares builder options and schedule options") {
  CHECK(options("gpipe", {}) == options("gpipe", {"backward=forward"}));
  CHECK_FALSE(options("gpipe", {"backward=reverse"}) == options("gpipe", {}));
  CHECK_FALSE(options("zb-1p", {"memory=1.5"}) == options("zb-1p", {"memory=2"}));
  CHECK_FALSE(options("zb-1p", {}) == options("zb-2p", {}));
  CHECK_FALSE(options("pipedream", {"drain_every=3"}) == options("pipedream", {"drain_every=2"}));
  CHECK(ScheduleOptions{} == options("1f1b", {}));
}

TEST_CASE("options: without a map the schedule is built with its defaults") {
  for (const ScheduleDef* def : schedules::catalog()) {
    if (!def->fields || def->tasks || def->name == "csv" || def->name == "synthesised") continue;
    CAPTURE(def->name);
    const Plan plan = test::least_plan(*def, 4, 8);
    const StageCosts costs = uniform_costs(plan, test::times(1, 2));
    const std::optional<config::Value> map = options_of(*def, {});
    CHECK(build_schedule(*def, {.plan = plan, .costs = costs}) ==
          build_schedule(*def, {.plan = plan, .costs = costs, .options = read_options(*def, &*map)}));
  }
}

}  // namespace stagecraft::options_test
