// PipeDream's optimizer (Narayanan et al., SOSP 2019, section 3.1). A[a][b][m] is the least time between micro-batches
// of the layers from cut a to cut b on m machines of a level:
//
//   one stage      A = stage(a, b, m)
//   a last stage   A = min over cuts c between and r < m of max(A[a][c][m-r], stage(c, b, r), edge(c, r), edge(b, r))
//
// On the next level A[a][b][all] stands for the seconds of layers a to b on one machine. Only the answers for all
// machines of a level are kept; the others of the start a are made again where the pipeline is read off.

#include "sim/plan/msr/pipedream.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/plan/msr/level_search.hpp"

namespace stagecraft::msr {
namespace {

constexpr double kMostSteps = 3e11;  ///< A few minutes.

/// A step is one cut tried for one number of machines and replicas.
void refuse_too_long(const Workload& work, const PipeDreamOptions& options) {
  const double cuts = work.cuts.count();
  double steps = 0;
  for (std::size_t l = 0; l < options.levels.size(); ++l) {
    const Level& level = options.levels[l];
    const double replicas = options.straight ? 1 : std::min(level.machines, level.most_replicas);
    const double starts = l + 1 == options.levels.size() ? 1 : cuts / 3;
    steps += starts * cuts * cuts / 2 * replicas * (level.machines - replicas / 2);
  }
  if (steps <= kMostSteps) return;
  throw Infeasible("size", fmt::format("the search needs some {:.0e} steps; {:.0e} is the most", steps, kMostSteps),
                   "merge layers, group the devices with `machines`, or choose smaller micro-batches (fewer replicas)");
}

}  // namespace

std::optional<FoundPipeline> search_pipedream(const Workload& work, const PipeDreamOptions& options) {
  STAGECRAFT_CHECK(!options.levels.empty());
  refuse_too_long(work, options);
  const int count = work.cuts.count();
  FoundPipeline found;
  std::vector<LevelSearch> searches;
  std::vector<double> seconds = compute_seconds(work);
  for (std::size_t level = 0; level < options.levels.size(); ++level) {
    const bool outermost = level + 1 == options.levels.size();
    searches.emplace_back(work, options, level, std::move(seconds));
    seconds = searches.back().on_all_machines(outermost);
    for (int a = 0; a < (outermost ? 1 : count); ++a)
      found.states += static_cast<std::int64_t>(count - a - 1) * searches.back().machines();
  }
  found.seconds = seconds[static_cast<std::size_t>(work.last()) * count];
  if (found.seconds == kInfinity) return std::nullopt;
  add_stages(searches, searches.size() - 1, 0, work.last(), {0}, found.stages);
  return found;
}

double period_of(const Workload& work, const std::vector<FoundStage>& stages, const PipeDreamOptions& options) {
  return period_of(MixedWork{{work}, std::vector<int>(options.levels.front().machines, 0)}, stages, options);
}

double period_of(const MixedWork& mixed, const std::vector<FoundStage>& stages, const PipeDreamOptions& options) {
  STAGECRAFT_CHECK(options.levels.size() == 1);
  const Rates rates{options.levels.front().bandwidth, options.formula, options.transfers};
  const Workload& work = mixed.work.front();
  double period = 0;
  int machines = 0;
  for (const FoundStage& stage : stages) {
    const auto replicas = static_cast<int>(stage.devices.size());
    machines += replicas;
    const double bytes =
        work.parameters[stage.to] - work.parameters[stage.from] + work.outputs[stage.to] - work.outputs[stage.from];
    if (options.memory && held(options.levels.front().machines - machines, replicas) * bytes > *options.memory)
      return kInfinity;
    double seconds = 0;
    for (const int device : stage.devices) {
      const Workload& own = mixed.work[mixed.type_of[device]];
      seconds = std::max(seconds, own.seconds[stage.to] - own.seconds[stage.from]);
    }
    period = std::max(period, stage_seconds(rates, work, {stage.from, stage.to}, seconds, replicas, 1));
  }
  return period;
}

}  // namespace stagecraft::msr
