// PipeDream's programme where devices differ. On one level a stage takes any devices and is as fast as the slowest of
// them. With levels inside, each type first makes A[a][b] of its own machines, and a stage outside takes machines of
// one type.

#include <algorithm>
#include <numeric>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/plan/msr/level_search.hpp"
#include "sim/plan/msr/mixed.hpp"

namespace stagecraft::msr {
namespace {

/// The levels inside a machine of one type.
struct Inside {
  PipeDreamOptions options;
  std::vector<LevelSearch> searches;
  std::vector<double> seconds;  ///< As compute_seconds() has them, for one machine of the outermost level.
  int devices = 1;
};

Inside search_inside(const Workload& work, const PipeDreamOptions& options, const std::vector<Level>& levels) {
  Inside inside{options, {}, compute_seconds(work), 1};
  inside.options.levels = levels;
  for (const Level& level : levels) inside.devices *= level.machines;
  return inside;
}

/// The searches point to the options beside them, so these have to be in their place.
void run(Inside& inside, const Workload& work) {
  for (std::size_t level = 0; level < inside.options.levels.size(); ++level) {
    inside.searches.emplace_back(work, inside.options, level, std::move(inside.seconds));
    inside.seconds = inside.searches.back().on_all_machines(false);
  }
}

/// Devices for stages in their order: of each type those that come next.
std::vector<std::vector<int>> machines_for(const std::vector<MixedStage>& stages, const std::vector<int>& type_of) {
  std::vector<char> taken(type_of.size(), 0);
  std::vector<std::vector<int>> machines;
  for (const MixedStage& stage : stages) {
    std::vector<int> needed = stage.take.of_type;
    std::vector<int>& own = machines.emplace_back();
    for (std::size_t d = 0; d < type_of.size(); ++d) {
      if (taken[d] || needed[type_of[d]] == 0) continue;
      taken[d] = 1, --needed[type_of[d]];
      own.push_back(static_cast<int>(d));
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
  const Rates rates{level.bandwidth, options.formula, options.transfers};
  const int sharing = nested ? inner.front().back().machines : 1;

  const auto seconds = [&](int from, int to, const Take& take, int behind) {
    if (nested && (take.types & (take.types - 1)) != 0) return kInfinity;
    const double bytes = work.parameters[to] - work.parameters[from] + work.outputs[to] - work.outputs[from];
    if (options.memory && held(behind, take.devices) * bytes > *options.memory) return kInfinity;
    double slowest = 0;
    for (std::size_t t = 0; t < inside.size(); ++t)
      if (take.types >> t & 1)
        slowest = std::max(slowest, inside[t].seconds[static_cast<std::size_t>(to) * work.cuts.count() + from]);
    return stage_seconds(rates, work, {from, to}, slowest, take.devices, sharing);
  };
  const int most = options.straight ? 1 : std::min(level.machines, level.most_replicas);
  const auto found = search_mixed(work.cuts, mixed.counts(), most, !options.fewer, seconds);
  if (!found) return std::nullopt;

  FoundPipeline pipeline{found->seconds, {}, found->states};
  const std::vector<std::vector<int>> machines = machines_for(found->stages, mixed.type_of);
  for (std::size_t s = 0; s < found->stages.size(); ++s) {
    const MixedStage& stage = found->stages[s];
    if (!nested) {
      pipeline.stages.push_back({stage.from, stage.to, machines[s]});
      continue;
    }
    const Inside& own = inside[mixed.type_of[machines[s].front()]];
    std::vector<int> starts;
    for (const int machine : machines[s]) starts.push_back(machine * own.devices);
    add_stages(own.searches, own.searches.size() - 1, stage.from, stage.to, starts, pipeline.stages);
  }
  return pipeline;
}

}  // namespace stagecraft::msr
