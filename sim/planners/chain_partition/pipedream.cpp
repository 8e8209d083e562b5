// PipeDream's optimizer (Narayanan et al., SOSP 2019, section 3.1) on equal devices or on several types, for the
// planner `pipedream`. A[a][b][m] is the least time between micro-batches of the layers from cut a to cut b on m
// machines of a level:
//
//   one stage      A = stage(a, b, m)
//   a last stage   A = min over cuts c between and r < m of max(A[a][c][m-r], stage(c, b, r), edge(c, r), edge(b, r))
//
// On the next level A[a][b][all] stands for the seconds of layers a to b on one machine. Only the answers for all
// machines of a level are kept; the other answers for the start a are recomputed when the pipeline is read off.
// Replicas of all levels multiply: r replicas outside leave a machine the numbers of replicas that r times are allowed,
// and A[a][b][all] of a machine is that of these numbers.

#include "sim/planners/chain_partition/pipedream.hpp"

#include <algorithm>
#include <deque>
#include <set>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/planners/chain_partition/level_search.hpp"
#include "sim/planners/chain_partition/mixed.hpp"

namespace stagecraft::chain_partition {
namespace {

constexpr double kPipedreamMostSteps = 3e11;  ///< A few minutes.

/// The sets of replica counts with which each level is searched, from the innermost on.
std::vector<std::set<ReplicaCounts>> counts_of_levels(const PipeDreamOptions& options) {
  std::vector<std::set<ReplicaCounts>> sets(options.levels.size());
  int devices = 1;
  for (const Level& level : options.levels) devices *= level.machines;
  sets.back() = {replica_counts(options, devices)};
  for (std::size_t l = sets.size(); l-- > 1;) {
    devices /= options.levels[l].machines;
    for (const ReplicaCounts& counts : sets[l])
      for (const int machines : counts)
        if (machines <= options.levels[l].machines) sets[l - 1].insert(counts_inside(counts, machines, devices));
  }
  return sets;
}

/// A step is one cut tried for one number of machines and replicas.
void refuse_too_long(const Workload& work, const PipeDreamOptions& options) {
  const double cuts = work.cuts.count();
  const auto sets = counts_of_levels(options);
  double steps = 0;
  for (std::size_t l = 0; l < sets.size(); ++l) {
    const int machines = options.levels[l].machines;
    const double starts = l + 1 == sets.size() ? 1 : cuts / 3;
    for (const ReplicaCounts& counts : sets[l])
      for (const int replicas : counts)
        if (replicas <= machines) steps += starts * cuts * cuts / 2 * (machines - replicas + 1);
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
  HierarchySearch hierarchy(work, options);
  const std::size_t outermost = options.levels.size() - 1;
  const ReplicaCounts counts = replica_counts(options, hierarchy.devices_inside(options.levels.size()));
  const LevelSearch& search = hierarchy.search(outermost, counts);
  FoundPipeline pipeline;
  pipeline.seconds = search.rows_from(0)[search.machines()][work.last()];
  if (pipeline.seconds == kInfinity) return std::nullopt;
  pipeline.states = hierarchy.states() + static_cast<std::int64_t>(work.cuts.count() - 1) * search.machines();
  hierarchy.add_stages(outermost, counts, 0, work.last(), {0}, pipeline.stages);
  return pipeline;
}

double period_of(const Workload& work, const std::vector<FoundStage>& stages, const PipeDreamOptions& options) {
  return period_of(MixedWork{{work}, std::vector<int>(options.levels.front().machines, 0)}, stages, options);
}

double period_of(const MixedWork& mixed, const std::vector<FoundStage>& stages, const PipeDreamOptions& options) {
  STAGECRAFT_CHECK(options.levels.size() == 1);
  const Rates rates{options.levels.front().bandwidth, options.formula, options.transfers, options.trains};
  const Workload& work = mixed.by_type.front();
  double period = 0;
  int machines_after = 0;  // Machines that stand idle do not count.
  for (const FoundStage& stage : stages) machines_after += static_cast<int>(stage.devices.size());
  for (const FoundStage& stage : stages) {
    const auto replicas = static_cast<int>(stage.devices.size());
    machines_after -= replicas;
    const bool allowed = options.allows(replicas);
    if (!allowed || !fits(work, options, stage.from, stage.to, machines_after, replicas)) return kInfinity;
    double seconds = 0;
    for (const int device : stage.devices) {
      const Workload& workload = mixed.by_type[mixed.type_of[device]];
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
  HierarchySearch search;
  std::vector<const std::vector<double>*>
      seconds;  ///< [r]: on one machine of a stage with r; null if r is not allowed.

  Inside(const Workload& work, PipeDreamOptions with_levels, const ReplicaCounts& counts, int machines)
      : options(std::move(with_levels)), search(work, options), seconds(machines + 1, nullptr) {
    for (const int count : counts)
      if (count <= machines) seconds[count] = &search.seconds(options.levels.size(), inside(counts, count));
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  int devices() const { return search.devices_inside(options.levels.size()); }
  ReplicaCounts inside(const ReplicaCounts& counts, int machines) const {
    return counts_inside(counts, machines, devices());
  }
};

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
  std::vector<int> counts(by_type.size(), 0);
  for (const int type : type_of) ++counts[type];
  return counts;
}

std::optional<FoundPipeline> search_pipedream(const MixedWork& mixed, const PipeDreamOptions& options,
                                              const std::vector<std::vector<Level>>& inner) {
  const Workload& work = mixed.by_type.front();
  const Level& level = options.levels.back();
  const bool nested = !inner.empty() && !inner.front().empty();
  int devices = level.machines;
  for (std::size_t l = 0; nested && l < inner.front().size(); ++l) devices *= inner.front()[l].machines;
  const ReplicaCounts counts = replica_counts(options, devices);
  std::deque<Inside> inside;
  for (std::size_t t = 0; t < mixed.by_type.size(); ++t) {
    PipeDreamOptions of_type = options;
    of_type.levels = nested ? inner[t] : std::vector<Level>{};
    inside.emplace_back(mixed.by_type[t], std::move(of_type), counts, level.machines);
  }
  const Rates rates{level.bandwidth, options.formula, options.transfers, options.trains};
  const int sharing = nested ? inner.front().back().machines : 1;

  const auto seconds = [&](int from, int to, const DeviceMix& mix, int machines_after) {
    if ((nested && (mix.types & (mix.types - 1)) != 0) || !options.allows(mix.devices)) return kInfinity;
    if (!fits(work, options, from, to, machines_after, mix.devices)) return kInfinity;
    double slowest = 0;
    for (std::size_t t = 0; t < inside.size(); ++t)
      if (mix.types >> t & 1) {
        const std::vector<double>& within = *inside[t].seconds[mix.devices];
        slowest = std::max(slowest, within[work.cuts.pair(from, to)]);
      }
    return stage_seconds(rates, work, {from, to}, slowest, mix.devices, sharing);
  };
  const int max_replicas = std::min(level.machines, counts.back());
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
    Inside& within = inside[mixed.type_of[machines[s].front()]];
    std::vector<int> starts;
    for (const int machine : machines[s]) starts.push_back(machine * within.devices());
    within.search.add_stages(within.options.levels.size() - 1, within.inside(counts, stage.mix.devices), stage.from,
                             stage.to, starts, pipeline.stages);
  }
  return pipeline;
}

}  // namespace stagecraft::chain_partition
