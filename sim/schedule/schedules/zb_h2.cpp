#include <algorithm>

#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

// Rank r runs 2(p - r) - 1 forwards ahead, which fills the time until the first gradient, and delays its first 2r
// weight gradients to the end, which fills the time after the last one. Without a barrier no bubble is left when
// F = I = W.
void zb_h2_order(const RankInput& r, RankOps& ops) {
  const int m = r.micro_batches;
  int forwards = 0, weights = 0;
  while (forwards < std::min(2 * (r.ranks - r.rank) - 1, m)) ops.forward(0, forwards++);
  for (int i = 0; i < m; ++i) {
    ops.input_gradient(0, i);
    if (i >= 2 * r.rank) ops.weight_gradient(0, weights++);
    if (forwards < m) ops.forward(0, forwards++);
  }
  while (weights < m) ops.weight_gradient(0, weights++);
}

}  // namespace

extern const ScheduleDef zb_h2{
    .name = "zb-h2",
    .summary = "No bubble between iterations where F = I = W, with up to twice the activations of 1F1B",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, figure 3",
    .placement = Placement::Linear,
    .rank = zb_h2_order,
};

}  // namespace stagecraft::schedules
