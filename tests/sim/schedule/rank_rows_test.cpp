#include <doctest/doctest.h>

#include "sim/schedule/layout.hpp"
#include "tests/support/devices.hpp"

namespace stagecraft {

TEST_CASE("schedule: all devices of a rank read one row") {
  Plan plan = chain_plan(2, 2, 4);
  plan.stages[StageId{0}].place_on(test::device_range(0, 2));
  plan.stages[StageId{1}].place_on({DeviceId{2}});
  Schedule schedule = empty_schedule(plan);
  CHECK(schedule.ranks.size() == 2);
  schedule.ranks[RankId{0}].push_back({OpKind::Forward, false, StageId{0}, 0});
  CHECK(&schedule.row(DeviceId{0}) == &schedule.row(DeviceId{1}));
  CHECK(schedule.row(DeviceId{2}).empty());
  CHECK(schedule.device_count() == 3);
  CHECK(schedule.op_count() == 2);
  CHECK(to_grid(schedule) == "device 0  |   0F0\ndevice 1  |   0F0\ndevice 2  |\n");
}

TEST_CASE("schedule: ranks of one device need no table of ranks") {
  CHECK(empty_schedule(chain_plan(3, 3, 2)).rank_of.empty());
}

}  // namespace stagecraft
