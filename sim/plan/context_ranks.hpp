#pragma once

#include <optional>
#include <vector>

namespace stagecraft {

/// Context ranks that divide a sequence: `count`, a power of two, from a multiple of it on.
struct RankRange {
  int first = 0, count = 1;

  friend bool operator==(const RankRange&, const RankRange&) = default;
};

/// The ranks of a context group with the sequences that they divide, where each sequence is divided over the fewest
/// ranks that have room for it (Megatron-LM's hybrid context parallelism).
class ContextRanks {
 public:
  /// `room`: tokens of one rank. `pad`: a sequence takes a multiple of these tokens.
  ContextRanks(int ranks, int room, int pad);

  /// As many ranks as a sequence needs, of which the busiest has the least work; nothing where none have room.
  std::optional<RankRange> place_of(int length) const;
  /// Work of the busiest of these ranks.
  double work_on(const RankRange&) const;
  /// `work`: of the whole sequence.
  void put(const RankRange&, int length, double work);

 private:
  int tokens_on_each(int length, int ranks) const;

  int room_, pad_;
  std::vector<int> left_;  ///< Tokens that a rank has room for.
  std::vector<double> work_;
};

}  // namespace stagecraft
