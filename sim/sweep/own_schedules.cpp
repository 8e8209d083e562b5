// Orders of the user's schedules, such as functions of a Python program, for the plans of a sweep's points.

#include "sim/sweep/points.hpp"

#include <algorithm>
#include <optional>

#include "sim/sweep/result.hpp"

namespace stagecraft {
namespace {

constexpr const char* kSchedule = "run.schedule";

const OwnSchedule* own_schedule_of(const Point& point, const std::vector<OwnSchedule>& schedules) {
  const auto set = std::find_if(point.settings.rbegin(), point.settings.rend(),
                                [](const config::Member& m) { return m.key == kSchedule; });
  if (set == point.settings.rend() || !set->value.is_scalar()) return nullptr;
  const auto at = std::find_if(schedules.begin(), schedules.end(),
                               [&](const OwnSchedule& schedule) { return schedule.spec.name() == set->value.text; });
  return at == schedules.end() ? nullptr : &*at;
}

/// The plan of an experiment; nothing where it has none.
std::optional<PlannedExperiment> plan_of(const Experiment& experiment) try {
  return plan_experiment(experiment);
} catch (const InputError&) {
  return {};
} catch (const Infeasible&) {
  return {};
}

/// The point with a schedule that any scenario can have.
Point placeholder_of(Point point) {
  point.orders = {{kSchedule, {}, config::Value::scalar("1f1b", {})}};
  return point;
}

/// The value of `run.schedule` with the rows of an order.
config::Value setting_of(const OwnOrder& order) {
  config::Value map = *schedule_of(order).options;
  std::erase_if(map.members, [](const config::Member& m) { return !m.value.origin.empty(); });
  return map;
}

}  // namespace

void add_own_orders(const Sweep& sweep, const std::vector<OwnSchedule>& schedules, std::vector<Point>& points) {
  for (Point& point : points) {
    const OwnSchedule* schedule = own_schedule_of(point, schedules);
    if (!schedule) continue;
    point = placeholder_of(std::move(point));
    const ResolvedPoint resolved = resolve_point(sweep, point);
    if (!resolved.scenario) continue;
    const Experiment usual = read_experiment(*resolved.scenario);
    const Experiment experiment = with_order(usual, schedule->spec, weights_spec("auto"));
    if (const std::optional<PlannedExperiment> planned = plan_of(experiment))
      point.orders.front().value = setting_of(schedule->order_on(*planned));
    else if (plan_of(usual))
      plan_experiment(experiment);  // Throws what is wrong with the schedule on this plan.
  }
}

}  // namespace stagecraft
