#include "sim/plan/msr/brute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::msr {
namespace {

class Search {
 public:
  Search(const Workload& work, const PipeDreamOptions& options, std::int64_t most)
      : work_(work), options_(options), machines_(options.levels.front().machines), most_(most) {
    best_.seconds = std::numeric_limits<double>::infinity();
  }

  std::optional<FoundPipeline> run() {
    divide(0, 0);
    if (best_.stages.empty()) return std::nullopt;
    best_.states = seen_;
    return best_;
  }

 private:
  void divide(int cut, int used) {
    if (cut == work_.last()) return look();
    for (int next = cut + 1; next <= work_.last(); ++next) {
      if (!work_.cuts.contains(next, cut)) continue;
      const int most = options_.straight ? 1 : options_.levels.front().most_replicas;
      FoundStage stage{cut, next, {}};
      for (int device = used; device < std::min(machines_, used + most); ++device) {
        stage.devices.push_back(device);
        stages_.push_back(stage);
        divide(next, device + 1);
        stages_.pop_back();
      }
    }
  }

  void look() {
    if (++seen_ > most_)
      throw Infeasible("size", fmt::format("there are more than {} divisions into stages", most_),
                       "fewer layers or devices, or the planner 'pipedream', which finds the same");
    if (!options_.fewer && stages_.back().devices.back() + 1 != machines_) return;
    const double period = period_of(work_, stages_, options_);
    if (period >= best_.seconds) return;
    best_.seconds = period;
    best_.stages = stages_;
  }

  const Workload& work_;
  const PipeDreamOptions& options_;
  int machines_;
  std::int64_t most_, seen_ = 0;
  std::vector<FoundStage> stages_;
  FoundPipeline best_;
};

}  // namespace

std::optional<FoundPipeline> search_all(const Workload& work, const PipeDreamOptions& options, std::int64_t most) {
  return Search(work, options, most).run();
}

}  // namespace stagecraft::msr
