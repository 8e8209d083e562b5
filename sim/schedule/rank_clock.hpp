#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <vector>

namespace stagecraft {

/// The clock of a greedy list schedule: in the order of time, then of ranks, each rank decides what to run next when it
/// becomes free or when something arrives for it.
///
/// Each rank has a list of its turns, which is short, and a tournament among the ranks finds the next turn:
/// ranks have many turns at the end of their work, where one stands for all.
template <class Time>
class RankClock {
 public:
  explicit RankClock(std::size_t ranks)
      : busy_until_(ranks, 0),
        turns_(ranks),
        leaves_(std::bit_ceil(std::max<std::size_t>(1, ranks))),
        first_(leaves_, kNever),
        winner_(2 * leaves_) {
    for (std::size_t r = 0; r < leaves_; ++r) winner_[leaves_ + r] = static_cast<int>(r);
    for (std::size_t node = leaves_ - 1; node > 0; --node) winner_[node] = winner_[2 * node];
  }

  /// The rank decides at `time`, or later when it becomes free.
  void wake(int rank, Time time) { add(rank, std::max(time, busy_until_[rank])); }
  /// The rank works until `time` and decides again then.
  void occupy(int rank, Time until) {
    busy_until_[rank] = until;
    std::vector<Time>& turns = turns_[rank];
    while (!turns.empty() && turns.back() < until) turns.pop_back();
    if (turns.empty() || turns.back() != until) turns.push_back(until);
    update(rank);
  }
  /// Calls decide(rank, now) until no rank has anything to decide.
  template <class Decide>
  void run(Decide&& decide) {
    for (int rank = winner_[1]; first_[rank] != kNever; rank = winner_[1]) {
      const Time now = first_[rank];
      turns_[rank].pop_back();
      update(rank);
      decide(rank, now);
    }
  }

 private:
  static constexpr Time kNever = std::numeric_limits<Time>::max();

  void add(int rank, Time time) {
    std::vector<Time>& turns = turns_[rank];
    const auto at = std::lower_bound(turns.begin(), turns.end(), time, std::greater<>());
    if (at != turns.end() && *at == time) return;
    turns.insert(at, time);
    if (turns.back() == time) update(rank);
  }

  /// Plays the matches of a rank again. Of equal times the lower rank wins.
  void update(int rank) {
    first_[rank] = turns_[rank].empty() ? kNever : turns_[rank].back();
    for (std::size_t node = (leaves_ + rank) / 2; node > 0; node /= 2) {
      const int low = winner_[2 * node], high = winner_[2 * node + 1];
      winner_[node] = first_[high] < first_[low] ? high : low;
    }
  }

  std::vector<Time> busy_until_;
  std::vector<std::vector<Time>> turns_;  ///< [rank]: when it decides, the latest first.
  std::size_t leaves_;
  std::vector<Time> first_;  ///< [rank]: its next turn.
  std::vector<int> winner_;  ///< [node of the tournament]: the rank with the next turn; ranks are its leaves.
};

}  // namespace stagecraft
