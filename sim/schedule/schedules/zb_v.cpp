#include <algorithm>

#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

/// Counts the micro-batches of each op and chunk. Micro-batches that are not there keep their turn but do nothing.
class Turns {
 public:
  Turns(RankOps& ops, int micro_batches) : ops_(&ops), micro_batches_(micro_batches) {}
  void take(OpKind kind, int chunk) {
    const int micro = next(kind, chunk)++;
    if (micro < micro_batches_) ops_->add(kind, chunk, micro);
  }
  void whole_backward(int chunk) {
    take(OpKind::InputGradient, chunk);
    take(OpKind::WeightGradient, chunk);
  }
  int count(OpKind kind, int chunk) const { return counts_[static_cast<std::size_t>(kind)][chunk]; }

 private:
  int& next(OpKind kind, int chunk) { return counts_[static_cast<std::size_t>(kind)][chunk]; }

  RankOps* ops_;
  int micro_batches_;
  int counts_[6][2] = {};
};

// By hand for F = I = W. Ahead: as deep as the memory of 1F1B allows, then the second chunk comes back; steady: one of
// everything; then what is left of the input gradients, and of the weight gradients.
void order(const RankInput& r, RankOps& ops) {
  const int p = r.ranks, rank = r.rank, slots = std::max(2 * p - 1, r.micro_batches);
  constexpr OpKind F = OpKind::Forward, I = OpKind::InputGradient, W = OpKind::WeightGradient;
  Turns turns(ops, r.micro_batches);
  for (int i = 0; i < 2 * (p - rank) - 1; ++i) turns.take(F, 0);
  for (int i = 0; i < rank; ++i) turns.take(F, 1), turns.take(F, 0);
  for (int i = 0; i < p - rank; ++i) turns.take(F, 1), turns.whole_backward(1);
  while (turns.count(F, 0) < slots || turns.count(F, 1) < turns.count(F, 0)) {
    if (turns.count(F, 0) < slots) turns.take(F, 0);
    turns.whole_backward(0);
    turns.take(F, 1);
    turns.whole_backward(1);
  }
  for (int i = 0; i < rank; ++i) turns.take(I, 0), turns.take(I, 1);
  for (int i = 0; i < p - rank; ++i) turns.whole_backward(0);
  for (const int chunk : {1, 0})
    while (turns.count(W, chunk) < turns.count(I, chunk)) turns.take(W, chunk);
}

}  // namespace

extern const ScheduleDef zb_v{
    .name = "zb-v",
    .summary = "Two stages on each device, there and back: no bubble between iterations in the memory of 1F1B",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 6; PyTorch's ScheduleZBVZeroBubble",
    .placement = Placement::V,
    .chunks = {2, 2},
    .rank = order,
};

}  // namespace stagecraft::schedules
