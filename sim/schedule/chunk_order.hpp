#pragma once

#include "sim/schedule/builder.hpp"

namespace stagecraft {

/// The order in which interleaved schedules go over chunks and micro-batches: a group of micro-batches through the
/// first chunk, then through the next, to the last; then the next group. The last group may be shorter.
class ChunkOrder {
 public:
  struct Visit {
    int chunk, micro;
  };
  ChunkOrder(int chunks, int micro_batches, int group)
      : chunks_(chunks), micro_batches_(micro_batches), group_(group) {}
  int size() const { return chunks_ * micro_batches_; }
  int group() const { return group_; }
  Visit forward(int k) const;
  /// The k-th visit with the chunks in reverse.
  Visit backward(int k) const;

 private:
  int chunks_, micro_batches_, group_;
};

/// The order for the option `group`. 0: the smallest group, at least one micro-batch for each rank, after which the
/// last group is full or also has one for each rank; it equals PyTorch's m / max(1, m / p) when that is whole.
ChunkOrder chunk_order_of(const RankInput&, std::string_view schedule, int group);
config::Field group_field();

/// `ahead` forwards, then forwards and backwards alternately, as one op when they go `together`, then the remaining
/// backwards.
void whole_backward(const ChunkOrder&, int ahead, bool together, RankOps&);

/// Forwards before the first backward, then forwards and input gradients alternately. From the r-th input gradient of
/// rank r on, a weight gradient follows each, so that no rank keeps more than the first does; the rest runs at the end
/// (torch.distributed.pipelining, ScheduleInterleavedZeroBubble).
void split_backward(const RankInput&, const ChunkOrder&, RankOps&);

}  // namespace stagecraft
