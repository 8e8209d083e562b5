// The schedule `zb-v`: zero bubble with two stages on each rank, in a V.

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "sim/core/enum_array.hpp"
#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

struct Turn {
  OpKind kind;
  int chunk;
};

/// Counts the micro-batches of each op and chunk. A turn after the last micro-batch does nothing.
class TurnCounter {
 public:
  TurnCounter(RankOps& ops, int micro_batches) : ops_(&ops), micro_batches_(micro_batches) {}

  /// Repeats a round of turns. O(ops): rounds in which nothing is left to do are counted at once.
  void take(int rounds, std::initializer_list<Turn> round) {
    const auto left = [&](const Turn& t) { return next(t) < micro_batches_; };
    for (; rounds > 0 && std::any_of(round.begin(), round.end(), left); --rounds)
      for (const Turn& t : round) {
        if (left(t)) ops_->add(t.kind, t.chunk, next(t));
        ++next(t);
      }
    for (const Turn& t : round) next(t) += std::max(rounds, 0);
  }
  int count(const Turn& t) const { return counts_[t.kind][t.chunk]; }

 private:
  int& next(const Turn& t) { return counts_[t.kind][t.chunk]; }

  RankOps* ops_;
  int micro_batches_;
  EnumArray<OpKind, std::array<int, 2>, 6> counts_ = {};
};

// Made by hand for F = I = W. Warm-up: as deep as the memory of 1F1B allows, then the second chunk comes back; steady
// state: one of everything; then the remaining input gradients and weight gradients.
void zb_v_order(const RankInput& r, RankOps& ops) {
  const int p = r.ranks, rank = r.rank, slots = std::max(2 * p - 1, r.micro_batches);
  constexpr Turn F[] = {{OpKind::Forward, 0}, {OpKind::Forward, 1}};
  constexpr Turn I[] = {{OpKind::InputGradient, 0}, {OpKind::InputGradient, 1}};
  constexpr Turn W[] = {{OpKind::WeightGradient, 0}, {OpKind::WeightGradient, 1}};
  TurnCounter turns(ops, r.micro_batches);
  turns.take(2 * (p - rank) - 1, {F[0]});
  turns.take(rank, {F[1], F[0]});
  turns.take(p - rank, {F[1], I[1], W[1]});
  turns.take(slots - p, {F[0], I[0], W[0], F[1], I[1], W[1]});
  turns.take(rank, {I[0], I[1]});
  turns.take(p - rank, {I[0], W[0]});
  for (const int chunk : {1, 0}) turns.take(turns.count(I[chunk]) - turns.count(W[chunk]), {W[chunk]});
}

}  // namespace

extern const ScheduleDef zb_v{
    .name = "zb-v",
    .summary = "Two stages on each device, in a V: no bubble between iterations in the memory of 1F1B",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 6; PyTorch's ScheduleZBVZeroBubble",
    .placement = Placement::V,
    .chunks = {2, 2},
    .rank = zb_v_order,
};

}  // namespace stagecraft::schedules
