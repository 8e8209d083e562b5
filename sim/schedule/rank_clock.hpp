#pragma once

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace stagecraft {

/// The clock of a greedy list schedule: in the order of time, then of ranks, each rank decides what to run next when it
/// becomes free or when something arrives for it.
template <class Time>
class RankClock {
 public:
  explicit RankClock(std::size_t ranks) : busy_until_(ranks, 0) {}

  /// The rank decides at `time`, or later when it becomes free.
  void wake(int rank, Time time) { turns_.push({std::max(time, busy_until_[rank]), rank}); }
  /// The rank works until `time` and decides again then.
  void occupy(int rank, Time until) {
    busy_until_[rank] = until;
    turns_.push({until, rank});
  }
  /// Calls decide(rank, now) until no rank has anything to decide.
  template <class Decide>
  void run(Decide&& decide) {
    while (!turns_.empty()) {
      const auto [now, rank] = turns_.top();
      turns_.pop();
      if (now >= busy_until_[rank]) decide(rank, now);
    }
  }

 private:
  using Turn = std::pair<Time, int>;

  std::vector<Time> busy_until_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
};

}  // namespace stagecraft
