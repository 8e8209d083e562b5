// Tries every division of the layers into stages and replicas, with every choice of devices where there are several
// types; the planner `brute` and tests call it.

#include "sim/planners/chain_partition/pipedream.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/core/activity.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"

namespace stagecraft::chain_partition {
namespace {

constexpr std::int64_t kNotice = 1 << 20;

class ExhaustiveSearch {
 public:
  ExhaustiveSearch(const MixedWork& mixed, const PipeDreamOptions& options, std::int64_t max_divisions)
      : mixed_(mixed),
        work_(mixed.by_type.front()),
        options_(options),
        machines_(options.levels.front().machines),
        most_replicas_(options.straight ? 1 : options.most_replicas),
        max_divisions_(max_divisions),
        used_(mixed.type_of.size(), 0) {
    best_.seconds = kInfinity;
  }

  std::optional<FoundPipeline> run() {
    divide(0, 0);
    if (best_.stages.empty()) return std::nullopt;
    best_.states = seen_;
    return best_;
  }

 private:
  void divide(int cut, int used) {
    if (cut == work_.last()) return record(used);
    for (int next = cut + 1; next <= work_.last(); ++next) {
      if (!work_.cuts.contains(next, cut)) continue;
      stages_.push_back({cut, next, {}});
      add_device(0, used);
      stages_.pop_back();
    }
  }

  /// Devices of one type are alike, so a stage takes those in front of their type: no device that is free before one
  /// of the same type which it has.
  void add_device(int from, int used) {
    stops_.pass();
    if (static_cast<int>(stages_.back().devices.size()) == most_replicas_) return;
    std::vector<char> passed(mixed_.by_type.size(), 0);
    for (int device = from; device < machines_; ++device) {
      const int type = mixed_.type_of[device];
      if (used_[device] || passed[type] || free_before(device, from, type)) continue;
      passed[type] = 1;
      used_[device] = 1;
      stages_.back().devices.push_back(device);
      divide(stages_.back().to, used + 1);
      add_device(device + 1, used + 1);
      stages_.back().devices.pop_back();
      used_[device] = 0;
    }
  }

  bool free_before(int device, int from, int type) const {
    for (int d = 0; d < std::min(device, from); ++d)
      if (!used_[d] && mixed_.type_of[d] == type) return true;
    return false;
  }

  void record(int used) {
    if (++seen_ % kNotice == 0) activity_.count(seen_, "divisions");
    if (seen_ > max_divisions_)
      throw Infeasible("size", fmt::format("there are more than {} divisions into stages", max_divisions_),
                       "fewer layers or devices, or the planner 'pipedream', which finds the same");
    if (!options_.fewer && used != machines_) return;
    const double period = period_of(mixed_, stages_, options_);
    if (period >= best_.seconds) return;
    best_.seconds = period;
    best_.stages = stages_;
  }

  const MixedWork& mixed_;
  const Workload& work_;
  const PipeDreamOptions& options_;
  int machines_, most_replicas_;
  std::int64_t max_divisions_, seen_ = 0;
  StopCounter stops_;
  std::vector<char> used_;
  std::vector<FoundStage> stages_;
  FoundPipeline best_;
  Activity activity_{"looking at every division into stages"};
};

}  // namespace

std::optional<FoundPipeline> search_all(const Workload& work, const PipeDreamOptions& options,
                                        std::int64_t max_divisions) {
  return search_all(MixedWork{{work}, std::vector<int>(options.levels.front().machines, 0)}, options, max_divisions);
}

std::optional<FoundPipeline> search_all(const MixedWork& work, const PipeDreamOptions& options,
                                        std::int64_t max_divisions) {
  return ExhaustiveSearch(work, options, max_divisions).run();
}

}  // namespace stagecraft::chain_partition
