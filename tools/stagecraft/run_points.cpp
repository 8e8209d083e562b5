// Runs the points of a sweep and shows their progress, for `sweep` and `report`.

#include "tools/stagecraft/run_points.hpp"

#include <fmt/core.h>

#include "sim/core/activity.hpp"

namespace stagecraft {

SweepEnd run_points(const SweepPlan& plan, const SweepOptions& options) {
  Activity activity("running points");
  return run_sweep(plan, options, [&](const SweepProgress& p) {
    activity.count(p.there + p.done, "points", p.total, p.there);
    if (p.failed > 0) activity.note(fmt::format("{} failed", p.failed));
  });
}

}  // namespace stagecraft
