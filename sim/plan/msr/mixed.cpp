#include "sim/plan/msr/mixed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::msr {
namespace {

constexpr double kMostSteps = 3e9;   // A minute.
constexpr double kMostStates = 3e7;  // 480 MB.
constexpr std::size_t kMostTypes = 16;

/// How many devices of each type are in use, as one number.
struct Used {
  std::vector<int> of_type;
  int devices = 0;
};

class Search {
 public:
  Search(const Cuts& cuts, const std::vector<int>& counts, int most, const StageSeconds& seconds)
      : cuts_(cuts), counts_(counts), takes_(takes_of(counts, most)), seconds_(seconds) {
    for (const int count : counts) strides_.push_back(width_), width_ *= count + 1;
    for (const Take& take : takes_) steps_.push_back(index_of(take.of_type));
    for (std::size_t u = 0; u < width_; ++u) used_.push_back(used_at(u));
  }

  std::optional<MixedPipeline> run(bool all_used) {
    const int last = cuts_.count() - 1;
    cells_.assign(cuts_.count() * width_, {});
    cell(last, 0).seconds = 0;
    for (int from = last - 1; from >= 0; --from)
      for (int to = from + 1; to <= last; ++to)
        if (cuts_.contains(to, from)) join(from, to);
    std::size_t best = width_ - 1;
    for (std::size_t u = 0; u < width_ && !all_used; ++u)
      if (cell(0, u).seconds < cell(0, best).seconds) best = u;
    if (cell(0, best).seconds == kInfinity) return std::nullopt;
    return read_off(best);
  }

 private:
  struct Cell {
    double seconds = kInfinity;
    std::int32_t to = -1, take = -1;
  };
  Cell& cell(int cut, std::size_t used) { return cells_[cut * width_ + used]; }

  std::size_t index_of(const std::vector<int>& of_type) const {
    std::size_t index = 0;
    for (std::size_t k = 0; k < of_type.size(); ++k) index += of_type[k] * strides_[k];
    return index;
  }
  Used used_at(std::size_t index) const {
    Used used;
    for (const int count : counts_) {
      used.of_type.push_back(static_cast<int>(index % (count + 1)));
      used.devices += used.of_type.back();
      index /= count + 1;
    }
    return used;
  }

  bool left(std::size_t used, const Take& take) const {
    for (std::size_t k = 0; k < counts_.size(); ++k)
      if (used_[used].of_type[k] + take.of_type[k] > counts_[k]) return false;
    return true;
  }

  void join(int from, int to) {
    for (std::size_t t = 0; t < takes_.size(); ++t)
      for (std::size_t used = 0; used < width_; ++used) {
        const double behind = cell(to, used).seconds;
        if (behind == kInfinity || !left(used, takes_[t])) continue;
        ++states_;
        Cell& whole = cell(from, used + steps_[t]);
        if (behind >= whole.seconds) continue;
        const double seconds = std::max(behind, seconds_(from, to, takes_[t], used_[used].devices));
        if (seconds < whole.seconds) whole = {seconds, to, static_cast<std::int32_t>(t)};
      }
  }

  MixedPipeline read_off(std::size_t used) {
    MixedPipeline found{cell(0, used).seconds, {}, states_};
    for (int from = 0; from != cuts_.count() - 1;) {
      const Cell& step = cell(from, used);
      found.stages.push_back({from, step.to, takes_[step.take]});
      from = step.to, used -= steps_[step.take];
    }
    return found;
  }

  const Cuts& cuts_;
  const std::vector<int>& counts_;
  std::vector<Take> takes_;
  const StageSeconds& seconds_;
  std::vector<std::size_t> strides_, steps_;  ///< Of each type, and of each take, in the number of what is used.
  std::size_t width_ = 1;
  std::vector<Used> used_;
  std::vector<Cell> cells_;
  std::int64_t states_ = 0;
};

void refuse_too_long(const Cuts& cuts, const std::vector<int>& counts) {
  double states = 1, pairs = 1;  // A take and what is used beside it: n (n + 1) / 2 of each type.
  for (const int n : counts) states *= n + 1, pairs *= (n + 1.0) * (n + 2) / 2;
  double stages = 0;
  for (int to = 1; to < cuts.count(); ++to)
    for (int from = 0; from < to; ++from) stages += cuts.contains(to, from);
  if (counts.size() <= kMostTypes && states * cuts.count() <= kMostStates && stages * pairs <= kMostSteps) return;
  throw Infeasible("size",
                   fmt::format("the search over {} types of devices has {:.2g} steps; {:.2g} are the most",
                               counts.size(), stages * pairs, kMostSteps),
                   "merge layers, name devices of fewer types in plan.devices, or take the planner 'spp'");
}

}  // namespace

std::vector<Take> takes_of(const std::vector<int>& counts, int most) {
  std::vector<Take> takes;
  std::vector<int> of_type(counts.size(), 0);
  while (true) {
    std::size_t k = 0;  // Counts up, the first type fastest.
    while (k < counts.size() && of_type[k] == counts[k]) of_type[k++] = 0;
    if (k == counts.size()) return takes;
    ++of_type[k];
    Take take{of_type, std::accumulate(of_type.begin(), of_type.end(), 0), 0};
    for (std::size_t t = 0; t < counts.size(); ++t)
      if (of_type[t] > 0) take.types |= 1U << t;
    if (take.devices <= most) takes.push_back(std::move(take));
  }
}

std::optional<MixedPipeline> search_mixed(const Cuts& cuts, const std::vector<int>& counts, int most, bool all_used,
                                          const StageSeconds& seconds) {
  refuse_too_long(cuts, counts);
  return Search(cuts, counts, most, seconds).run(all_used);
}

}  // namespace stagecraft::msr
