// The number of stages that a point's schedule needs on the devices of the sweep's scenario.

#include <algorithm>

#include "sim/config/override.hpp"
#include "sim/config/units.hpp"
#include "sim/experiment/run.hpp"
#include "sim/experiment/stages_of_schedule.hpp"
#include "sim/sweep/points.hpp"

namespace stagecraft {
namespace {

using config::Member;
using config::Value;

bool sets_schedule(const Member& m) { return is_within(m.key, "run.schedule"); }

/// Whether a setting decides about the stages or their places.
bool sets_stages(const Member& m) {
  return m.key == "plan" || m.key == "plan.planner" || m.key == "plan.placement" || is_within(m.key, "plan.stages");
}

SweepStep joined(SweepStep settings, const SweepStep& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

/// The part of the scenario at this path after these settings of it; null if it has none.
Value part_with(const Sweep& sweep, const std::string& path, const SweepStep& settings) {
  Value root;
  root.kind = Value::Kind::Map;
  config::Problems problems;
  if (const Value* written = config::get_path(sweep.base, path)) config::set_path(root, path, *written, {}, problems);
  for (const Member& m : settings)
    if (is_within(m.key, path)) config::set_path(root, m.key, m.value, m.where, problems);
  problems.throw_if_any();
  const Value* part = config::get_path(root, path);
  return part ? *part : Value();
}

/// A schedule and where it wants the stages.
struct PlacedSchedule {
  const ScheduleDef* def;
  PlacementRule placing;

  friend bool operator==(const PlacedSchedule&, const PlacedSchedule&) = default;
};

PlacedSchedule schedule_with(const Sweep& sweep, const SweepStep& settings) {
  const Value options = checked_field("run.schedule", part_with(sweep, "run.schedule", settings));
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", options.at("name").text);
  return {&def, placing_of(def, &options)};
}

/// The pipeline ranks of the plan with these settings. Only a schedule with several stages on a rank needs the plan.
int ranks_with(const Sweep& sweep, const SweepStep& settings, const PlacedSchedule& schedule, int stages) {
  if (schedule.placing.placement == Placement::Bidirectional || schedule.placing.chunks.max == 1) return stages;
  config::Problems problems;
  Value checked = checked_scenario(sweep.base, settings, problems);
  problems.throw_if_any();
  return pipeline_ranks(plan_experiment(read_experiment(settled_scenario(std::move(checked)))).plan);
}

}  // namespace

std::optional<int> following_stages(const Sweep& sweep, const SweepStep& settings) try {
  if (std::none_of(settings.begin(), settings.end(), sets_schedule)) return {};
  if (std::any_of(settings.begin(), settings.end(), sets_stages)) return {};
  SweepStep without = settings;
  std::erase_if(without, sets_schedule);
  without = joined(std::move(without), sweep.sets);
  const PlacedSchedule usual = schedule_with(sweep, without);
  const PlacedSchedule now = schedule_with(sweep, joined(settings, sweep.sets));
  const Value stages = part_with(sweep, "plan.stages", without),
              placement = part_with(sweep, "plan.placement", without);
  const bool has_place = placement.is_scalar() && placement.text != "auto";
  std::string why;
  const std::optional<double> count = config::parse_number(stages.text, why);
  if (now == usual || has_place || !stages.is_scalar() || !count || *count < 1) return {};
  const int before = static_cast<int>(*count), ranks = ranks_with(sweep, without, usual, before);
  const int following = ranks * stages_on_rank(now.placing, before / ranks);
  return following == before ? std::optional<int>() : following;
} catch (const InputError&) {  // The point says what is wrong with it when it runs.
  return {};
} catch (const Infeasible&) {
  return {};
}

}  // namespace stagecraft
