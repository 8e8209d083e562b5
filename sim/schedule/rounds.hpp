#pragma once

#include "sim/schedule/builder.hpp"

namespace stagecraft {

/// The order in which interleaved schedules go over chunks and micro-batches: a group of micro-batches through the
/// first chunk, then through the next, to the last; then the next group. What is left over is a shorter last group.
class Rounds {
 public:
  struct Visit {
    int chunk, micro;
  };
  Rounds(int chunks, int micro_batches, int group) : chunks_(chunks), micro_batches_(micro_batches), group_(group) {}
  int size() const { return chunks_ * micro_batches_; }
  int group() const { return group_; }
  Visit forward(int k) const;
  /// The same with the chunks in reverse.
  Visit backward(int k) const;

 private:
  int chunks_, micro_batches_, group_;
};

/// The rounds of the schedule's option `group`. Left out, a group is the smallest that has a micro-batch for every rank
/// and leaves no shorter one over; where PyTorch's m / max(1, m / p) is whole, it is that.
Rounds rounds_of(const RankInput&, std::string_view schedule);
config::Field group_field();

/// `ahead` forwards, then a forward and a backward in turn, as one op when they go `together`, then the backwards that
/// are left.
void whole_backward(const Rounds&, int ahead, bool together, RankOps&);

/// Forwards before the first backward, then a forward and a backward in turn, weight gradients one behind each input
/// gradient from the rank's r-th on (so that no rank keeps more than the first does), the rest at the end
/// (torch.distributed.pipelining, ScheduleInterleavedZeroBubble).
void split_backward(const RankInput&, const Rounds&, RankOps&);

}  // namespace stagecraft
