// Gives each sequence of a pack the fewest context ranks that have room for it.

#include "sim/plan/context_ranks.hpp"

#include <algorithm>

namespace stagecraft {

ContextRanks::ContextRanks(int ranks, int room, int pad)
    : room_(room), pad_(pad), left_(ranks, room), work_(ranks, 0) {}

int ContextRanks::tokens_on_each(int length, int ranks) const {
  const int computed = (length + pad_ - 1) / pad_ * pad_;
  return (computed + ranks - 1) / ranks;
}

std::optional<RankRange> ContextRanks::place_of(int length) const {
  const int ranks = static_cast<int>(left_.size());
  int count = 1;
  while (count < ranks && tokens_on_each(length, count) > room_) count *= 2;
  const int tokens = tokens_on_each(length, count);
  std::optional<RankRange> best;
  for (int first = 0; first + count <= ranks; first += count) {
    const RankRange range{first, count};
    const bool has_room =
        std::all_of(left_.begin() + first, left_.begin() + first + count, [&](int left) { return tokens <= left; });
    if (has_room && (!best || work_on(range) < work_on(*best))) best = range;
  }
  return best;
}

double ContextRanks::work_on(const RankRange& range) const {
  return *std::max_element(work_.begin() + range.first, work_.begin() + range.first + range.count);
}

void ContextRanks::put(const RankRange& range, int length, double work) {
  for (int rank = range.first; rank < range.first + range.count; ++rank) {
    left_[rank] -= tokens_on_each(length, range.count);
    work_[rank] += work / range.count;
  }
}

}  // namespace stagecraft
