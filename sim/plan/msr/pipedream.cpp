// PipeDream's optimizer (Narayanan et al., SOSP 2019, section 3.1). A[a][b][m] is the least time between micro-batches
// of the layers from cut a to cut b on m machines of a level:
//
//   one stage      A = stage(a, b, m)
//   a last stage   A = min over cuts c between and r < m of max(A[a][c][m-r], stage(c, b, r), edge(c, r), edge(b, r))
//
// On the next level A[a][b][all] stands for the seconds of layers a to b on one machine. Only the answers for all
// machines of a level are kept; the other answers for the start a are recomputed when the pipeline is read off.

#include "sim/plan/msr/pipedream.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/plan/msr/level_search.hpp"
#include "sim/plan/msr/mixed.hpp"

namespace stagecraft::msr {
namespace {

constexpr double kPipedreamMostSteps = 3e11;  ///< A few minutes.

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
  if (steps <= kPipedreamMostSteps) return;
  throw Infeasible("size",
                   fmt::format("the search needs some {:.0e} steps; {:.0e} is the most", steps, kPipedreamMostSteps),
                   "merge layers, group the devices with `machines`, or choose smaller micro-batches (fewer replicas)");
}

}  // namespace

std::optional<FoundPipeline> search_pipedream(const Workload& work, const PipeDreamOptions& options) {
  STAGECRAFT_CHECK(!options.levels.empty());
  refuse_too_long(work, options);
  const int count = work.cuts.count();
  FoundPipeline pipeline;
  std::vector<LevelSearch> searches;
  std::vector<double> seconds = compute_seconds(work);
  for (std::size_t level = 0; level < options.levels.size(); ++level) {
    const bool outermost = level + 1 == options.levels.size();
    searches.emplace_back(work, options, level, std::move(seconds));
    seconds = searches.back().on_all_machines(outermost);
    for (int a = 0; a < (outermost ? 1 : count); ++a)
      pipeline.states += static_cast<std::int64_t>(count - a - 1) * searches.back().machines();
  }
  pipeline.seconds = seconds[static_cast<std::size_t>(work.last()) * count];
  if (pipeline.seconds == kInfinity) return std::nullopt;
  add_stages(searches, searches.size() - 1, 0, work.last(), {0}, pipeline.stages);
  return pipeline;
}

double period_of(const Workload& work, const std::vector<FoundStage>& stages, const PipeDreamOptions& options) {
  return period_of(MixedWork{{work}, std::vector<int>(options.levels.front().machines, 0)}, stages, options);
}

double period_of(const MixedWork& mixed, const std::vector<FoundStage>& stages, const PipeDreamOptions& options) {
  STAGECRAFT_CHECK(options.levels.size() == 1);
  const Rates rates{options.levels.front().bandwidth, options.formula, options.transfers, options.trains};
  const Workload& work = mixed.work.front();
  double period = 0;
  int machines = 0;
  for (const FoundStage& stage : stages) {
    const auto replicas = static_cast<int>(stage.devices.size());
    machines += replicas;
    const int machines_after = options.levels.front().machines - machines;
    const bool allowed = options.levels.front().allows(replicas);
    if (!allowed || !fits(work, options, stage.from, stage.to, machines_after, replicas)) return kInfinity;
    double seconds = 0;
    for (const int device : stage.devices) {
      const Workload& workload = mixed.work[mixed.type_of[device]];
      seconds = std::max(seconds, workload.seconds[stage.to] - workload.seconds[stage.from]);
    }
    period = std::max(period, stage_seconds(rates, work, {stage.from, stage.to}, seconds, replicas, 1));
  }
  return period;
}

// The dynamic program where devices differ. On one level a stage takes any devices and is as fast as the slowest of
// them. With levels inside, each type first makes A[a][b] of its own machines, and a stage outside takes machines of
// one type.
namespace {

/// The levels inside a machine of one type.
struct Inside {
  PipeDreamOptions options;
  std::vector<LevelSearch> searches;
  std::vector<double> seconds;  ///< Seconds on one machine of the outermost level, in the layout of compute_seconds().
  int devices = 1;
};

Inside search_inside(const Workload& work, const PipeDreamOptions& options, const std::vector<Level>& levels) {
  Inside inside{options, {}, compute_seconds(work), 1};
  inside.options.levels = levels;
  for (const Level& level : levels) inside.devices *= level.machines;
  return inside;
}

/// The searches point to `inside.options`, so `inside` must not move after this.
void run(Inside& inside, const Workload& work) {
  for (std::size_t level = 0; level < inside.options.levels.size(); ++level) {
    inside.searches.emplace_back(work, inside.options, level, std::move(inside.seconds));
    inside.seconds = inside.searches.back().on_all_machines(false);
  }
}

/// Devices for stages in their order; each stage takes the next free devices of each type.
std::vector<std::vector<int>> machines_for(const std::vector<MixedStage>& stages, const std::vector<int>& type_of) {
  std::vector<char> taken(type_of.size(), 0);
  std::vector<std::vector<int>> machines;
  for (const MixedStage& stage : stages) {
    std::vector<int> needed = stage.mix.of_type;
    std::vector<int>& stage_machines = machines.emplace_back();
    for (std::size_t d = 0; d < type_of.size(); ++d) {
      if (taken[d] || needed[type_of[d]] == 0) continue;
      taken[d] = 1, --needed[type_of[d]];
      stage_machines.push_back(static_cast<int>(d));
    }
  }
  return machines;
}

}  // namespace

std::vector<int> MixedWork::counts() const {
  std::vector<int> counts(work.size(), 0);
  for (const int type : type_of) ++counts[type];
  return counts;
}

std::optional<FoundPipeline> search_pipedream(const MixedWork& mixed, const PipeDreamOptions& options,
                                              const std::vector<std::vector<Level>>& inner) {
  const Workload& work = mixed.work.front();
  const Level& level = options.levels.back();
  const bool nested = !inner.empty() && !inner.front().empty();
  std::vector<Inside> inside;
  for (std::size_t t = 0; t < mixed.work.size(); ++t)
    inside.push_back(search_inside(mixed.work[t], options, nested ? inner[t] : std::vector<Level>{}));
  for (std::size_t t = 0; t < mixed.work.size(); ++t) run(inside[t], mixed.work[t]);
  const Rates rates{level.bandwidth, options.formula, options.transfers, options.trains};
  const int sharing = nested ? inner.front().back().machines : 1;

  const auto seconds = [&](int from, int to, const DeviceMix& mix, int machines_after) {
    if ((nested && (mix.types & (mix.types - 1)) != 0) || !level.allows(mix.devices)) return kInfinity;
    if (!fits(work, options, from, to, machines_after, mix.devices)) return kInfinity;
    double slowest = 0;
    for (std::size_t t = 0; t < inside.size(); ++t)
      if (mix.types >> t & 1)
        slowest = std::max(slowest, inside[t].seconds[static_cast<std::size_t>(to) * work.cuts.count() + from]);
    return stage_seconds(rates, work, {from, to}, slowest, mix.devices, sharing);
  };
  const int max_replicas = options.straight ? 1 : std::min(level.machines, level.most_replicas);
  const auto mixed_pipeline = search_mixed(work.cuts, mixed.counts(), max_replicas, !options.fewer, seconds);
  if (!mixed_pipeline) return std::nullopt;

  FoundPipeline pipeline{mixed_pipeline->seconds, {}, mixed_pipeline->states, mixed_pipeline->exhaustive};
  const std::vector<std::vector<int>> machines = machines_for(mixed_pipeline->stages, mixed.type_of);
  for (std::size_t s = 0; s < mixed_pipeline->stages.size(); ++s) {
    const MixedStage& stage = mixed_pipeline->stages[s];
    if (!nested) {
      pipeline.stages.push_back({stage.from, stage.to, machines[s]});
      continue;
    }
    const Inside& within = inside[mixed.type_of[machines[s].front()]];
    std::vector<int> starts;
    for (const int machine : machines[s]) starts.push_back(machine * within.devices);
    add_stages(within.searches, within.searches.size() - 1, stage.from, stage.to, starts, pipeline.stages);
  }
  return pipeline;
}

}  // namespace stagecraft::msr
