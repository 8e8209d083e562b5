// Searches for the fastest chain of stages on devices of several types, any of which may form a stage; the planners
// `pipedream` and `piper` and the bound of the best stages (shared/bounds.cpp) call it.

#include "sim/planners/chain_partition/mixed.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::chain_partition {
namespace {

constexpr double kMixedMostSteps = 3e9;                      // A minute.
constexpr double kMixedMostStates = 3e7;                     // 480 MB.
constexpr std::size_t kMostTypes = 16, kMostLineTypes = 64;  // DeviceMix has a bit for each of 64 types.

class MixedStageSearch {
 public:
  MixedStageSearch(const Cuts& cuts, const std::vector<int>& counts, int max_replicas, const StageSeconds& seconds)
      : cuts_(cuts), counts_(counts), seconds_(seconds) {
    const DeviceMixes mixes(counts);
    width_ = mixes.size();
    used_ = mixes.list();
    stage_mixes_ = mixes.up_to(max_replicas);
    for (const DeviceMix& mix : stage_mixes_) steps_.push_back(mixes.number_of(mix));
  }

  std::optional<MixedPipeline> run(bool all_used) {
    const int last = cuts_.count() - 1;
    cells_.assign(cuts_.count() * width_, {});
    cell(last, 0).seconds = 0;
    for (int from = last - 1; from >= 0; --from)
      for (int to = from + 1; to <= last; ++to)
        if (cuts_.contains(to, from)) join(from, to);
    std::int64_t best = width_ - 1;
    for (std::int64_t u = 0; u < width_ && !all_used; ++u)
      if (cell(0, u).seconds < cell(0, best).seconds) best = u;
    if (cell(0, best).seconds == kInfinity) return std::nullopt;
    return read_off(best);
  }

 private:
  struct Cell {
    double seconds = kInfinity;
    std::int32_t to = -1, mix = -1;
  };
  Cell& cell(int cut, std::int64_t used) { return cells_[cut * width_ + used]; }

  bool left(std::int64_t used, const DeviceMix& mix) const {
    for (std::size_t k = 0; k < counts_.size(); ++k)
      if (used_[used].of_type[k] + mix.of_type[k] > counts_[k]) return false;
    return true;
  }

  void join(int from, int to) {
    stop_point();
    for (std::size_t t = 0; t < stage_mixes_.size(); ++t)
      for (std::int64_t used = 0; used < width_; ++used) {
        const double rest = cell(to, used).seconds;
        if (rest == kInfinity || !left(used, stage_mixes_[t])) continue;
        ++states_;
        Cell& whole = cell(from, used + steps_[t]);
        if (rest >= whole.seconds) continue;
        const double seconds = std::max(rest, seconds_(from, to, stage_mixes_[t], used_[used].devices));
        if (seconds < whole.seconds) whole = {seconds, to, static_cast<std::int32_t>(t)};
      }
  }

  MixedPipeline read_off(std::int64_t used) {
    MixedPipeline pipeline{cell(0, used).seconds, {}, states_};
    for (int from = 0; from != cuts_.count() - 1;) {
      const Cell& step = cell(from, used);
      pipeline.stages.push_back({from, step.to, stage_mixes_[step.mix]});
      from = step.to, used -= steps_[step.mix];
    }
    return pipeline;
  }

  const Cuts& cuts_;
  const std::vector<int>& counts_;
  const StageSeconds& seconds_;
  std::int64_t width_ = 0;              ///< Number of mixes.
  std::vector<DeviceMix> used_;         ///< Devices in use, by number.
  std::vector<DeviceMix> stage_mixes_;  ///< Devices that one stage may have.
  std::vector<std::int64_t> steps_;     ///< Number of each mix in stage_mixes_.
  std::vector<Cell> cells_;
  std::int64_t states_ = 0;
};

/// Devices in a line, type by type; stages take neighbors, the last stage those at the end.
class LineStageSearch {
 public:
  LineStageSearch(const Cuts& cuts, const std::vector<int>& counts, bool reversed, int max_replicas,
                  const StageSeconds& seconds)
      : cuts_(cuts), seconds_(seconds) {
    for (std::size_t t = 0; t < counts.size(); ++t) line_.insert(line_.end(), counts[t], static_cast<int>(t));
    if (reversed) std::reverse(line_.begin(), line_.end());
    mixes_.resize(line_.size());
    for (std::size_t used = 0; used < line_.size(); ++used) {
      DeviceMix mix{std::vector<int>(counts.size(), 0), 0, 0};
      for (std::size_t d = used; d < line_.size() && mix.devices < max_replicas; ++d) {
        const int type = line_[line_.size() - 1 - d];
        ++mix.of_type[type], ++mix.devices, mix.types |= std::uint64_t{1} << type;
        mixes_[used].push_back(mix);
      }
    }
  }

  std::optional<MixedPipeline> run(bool all_used) {
    const int last = cuts_.count() - 1;
    cells_.assign(cuts_.count() * width(), {});
    cell(last, 0).seconds = 0;
    for (int from = last - 1; from >= 0; --from)
      for (int to = from + 1; to <= last; ++to)
        if (cuts_.contains(to, from)) join(from, to);
    std::size_t best = width() - 1;
    for (std::size_t u = 0; u < width() && !all_used; ++u)
      if (cell(0, u).seconds < cell(0, best).seconds) best = u;
    if (cell(0, best).seconds == kInfinity) return std::nullopt;
    return read_off(best);
  }

 private:
  struct Cell {
    double seconds = kInfinity;
    int to = -1, devices = 0;
  };
  std::size_t width() const { return line_.size() + 1; }
  Cell& cell(int cut, std::size_t used) { return cells_[cut * width() + used]; }

  void join(int from, int to) {
    stop_point();
    for (std::size_t used = 0; used < line_.size(); ++used) {
      const double rest = cell(to, used).seconds;
      if (rest == kInfinity) continue;
      for (const DeviceMix& mix : mixes_[used]) {
        ++states_;
        Cell& whole = cell(from, used + mix.devices);
        if (rest >= whole.seconds) continue;
        const double seconds = std::max(rest, seconds_(from, to, mix, static_cast<int>(used)));
        if (seconds < whole.seconds) whole = {seconds, to, mix.devices};
      }
    }
  }

  MixedPipeline read_off(std::size_t used) {
    MixedPipeline pipeline{cell(0, used).seconds, {}, states_, false};
    for (int from = 0; from != cuts_.count() - 1;) {
      const Cell& step = cell(from, used);
      used -= step.devices;
      pipeline.stages.push_back({from, step.to, mixes_[used][step.devices - 1]});
      from = step.to;
    }
    return pipeline;
  }

  const Cuts& cuts_;
  const StageSeconds& seconds_;
  std::vector<int> line_;                      ///< The type of each device.
  std::vector<std::vector<DeviceMix>> mixes_;  ///< [devices in use at the end of the line][devices of the stage - 1]
  std::vector<Cell> cells_;
  std::int64_t states_ = 0;
};

/// Pairs of a first and a last cut of a stage.
double stages_between(const Cuts& cuts) {
  double stages = 0;
  for (int to = 1; to < cuts.count(); ++to)
    for (int from = 0; from < to; ++from) stages += cuts.contains(to, from);
  return stages;
}

bool is_short(const Cuts& cuts, const std::vector<int>& counts) {
  double states = 1, pairs = 1;  // Pairs of a mix and a mix within it: (n + 1) (n + 2) / 2 for n devices of a type.
  for (const int n : counts) states *= n + 1, pairs *= (n + 1.0) * (n + 2) / 2;
  return counts.size() <= kMostTypes && states * cuts.count() <= kMixedMostStates &&
         stages_between(cuts) * pairs <= kMixedMostSteps;
}

void refuse_too_long(const Cuts& cuts, const std::vector<int>& counts, int max_replicas) {
  double devices = 0;
  for (const int n : counts) devices += n;
  const double steps = 2 * stages_between(cuts) * devices * std::min<double>(max_replicas, devices);
  if (counts.size() <= kMostLineTypes && steps <= kMixedMostSteps) return;
  throw Infeasible("size",
                   fmt::format("the search over {} of devices has {:.2g} steps; {:.2g} are the most",
                               pluralize(std::ssize(counts), "type"), steps, kMixedMostSteps),
                   "merge layers, name devices of fewer types in plan.devices, or take the planner 'spp'");
}

}  // namespace

std::optional<MixedPipeline> search_mixed(const Cuts& cuts, const std::vector<int>& counts, int max_replicas,
                                          bool all_used, const StageSeconds& seconds) {
  if (is_short(cuts, counts)) return MixedStageSearch(cuts, counts, max_replicas, seconds).run(all_used);
  refuse_too_long(cuts, counts, max_replicas);
  std::optional<MixedPipeline> best;
  std::int64_t states = 0;
  for (const bool reversed : {false, true}) {
    const auto pipeline = LineStageSearch(cuts, counts, reversed, max_replicas, seconds).run(all_used);
    if (!pipeline) continue;
    states += pipeline->states;
    if (!best || pipeline->seconds < best->seconds) best = pipeline;
  }
  if (best) best->states = states;
  return best;
}

}  // namespace stagecraft::chain_partition
