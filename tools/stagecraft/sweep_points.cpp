// What commands do with the points of a sweep: `check` reads all, compiles about 16 of them, and prints a note for each
// that cannot run; `sweep` and `report` run them and show their progress.

#include "tools/stagecraft/sweep_points.hpp"

#include <optional>

#include <fmt/core.h>

#include "sim/core/activity.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/run.hpp"
#include "sim/sweep/result.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostPlanned = 16;
constexpr int kMostNotes = 5;

/// Why the scenario of a point cannot run; empty if it can.
std::string problem_of(const Scenario& scenario, std::optional<Experiment>& previous) {
  try {
    previous = read_experiment(scenario, previous ? &*previous : nullptr);
    static_cast<void>(compile(*previous));
    return {};
  } catch (const InputError& e) {
    return e.problems().front().message;
  } catch (const Infeasible& e) {
    return full_message(e.problem());
  }
}

}  // namespace

std::string check_points(const SweepPlan& plan) {
  const std::size_t count = plan.points.size(), step = (count + kMostPlanned - 1) / kMostPlanned;
  Activity activity("checking points");
  activity.count(0, "points", static_cast<std::int64_t>(count));
  std::optional<Experiment> previous;
  int planned = 0, failed = 0;
  for (std::size_t i = 0; i < count; ++i, activity.count_one()) {
    const ResolvedPoint point = resolve_point(plan.sweep, plan.points[i]);
    std::string problem = point.problems.empty() ? "" : point.problems.front().message;
    // The last point has the last value of each axis, so it is planned, too.
    if (problem.empty() && (i % step == 0 || i + 1 == count))
      ++planned, problem = problem_of(*point.scenario, previous);
    if (problem.empty()) continue;
    if (++failed <= kMostNotes)
      print_error("note: point {} ({}) cannot run: {}\n", plan.points[i].number, plan.points[i].label, problem);
  }
  if (failed > kMostNotes) print_error("note: {} more cannot run\n", pluralize(failed - kMostNotes, "point"));
  return fmt::format("all points read, {} planned, {} cannot run", planned,
                     failed == 0 ? "none" : std::to_string(failed));
}

SweepEnd run_points(const SweepPlan& plan, const SweepOptions& options) {
  Activity activity("running points");
  return run_sweep(plan, options, [&](const SweepProgress& p) {
    activity.count(p.there + p.done, "points", p.total, p.there);
    if (p.failed > 0) activity.note(fmt::format("{} failed", p.failed));
  });
}

}  // namespace stagecraft
