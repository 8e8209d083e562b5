#pragma once

#include "sim/schedule/builder.hpp"

namespace stagecraft {

/// The order in which interleaved schedules go over chunks and micro-batches: a group of micro-batches through the
/// first chunk, then through the next, to the last; then the next group. The last group may be shorter.
class Rounds {
 public:
  struct Visit {
    int chunk, micro;
  };
  Rounds(int chunks, int micro_batches, int group) : chunks_(chunks), micro_batches_(micro_batches), group_(group) {}
  int size() const { return chunks_ * micro_batches_; }
  int group() const { return group_; }
  Visit forward(int k) const;
  /// The k-th visit with the chunks in reverse.
  Visit backward(int k) const;

 private:
  int chunks_, micro_batches_, group_;
};

/// The rounds for the option `group`. 0: the smallest group that has a micro-batch for every rank and leaves no shorter
/// group; it equals PyTorch's m / max(1, m / p) when that is whole.
Rounds rounds_of(const RankInput&, std::string_view schedule, int group);
config::Field group_field();

/// `ahead` forwards, then forwards and backwards alternately, as one op when they go `together`, then the remaining
/// backwards.
void whole_backward(const Rounds&, int ahead, bool together, RankOps&);

/// Forwards before the first backward, then forwards and input gradients alternately. From the r-th input gradient of
/// rank r on, a weight gradient follows each, so that no rank keeps more than the first does; the rest runs at the end
/// (torch.distributed.pipelining, ScheduleInterleavedZeroBubble).
void split_backward(const RankInput&, const Rounds&, RankOps&);

}  // namespace stagecraft
