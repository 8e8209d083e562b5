// The schedule `zb-h1-light`: 1F1B in which a rank delays its first weight gradients to the end.

#include <algorithm>
#include <vector>

#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

// 1F1B in which rank r delays its first r weight gradients to the end, the latest first. A weight gradient right after
// its input gradient runs as one backward with it, which delays the message by W; the halves stay apart only after the
// last forward, and on all ranks but the first.
void zb_h1_light_order(const RankInput& r, RankOps& ops) {
  const int m = r.micro_batches, ahead = std::min(r.ranks - 1 - r.rank, m);
  std::vector<int> delayed;
  for (int k = 0; k < m + ahead; ++k) {
    if (k < m) ops.forward(0, k);
    if (k < ahead) continue;
    const int micro = k - ahead;
    const bool apart = r.rank > 0 && k >= m - 1;
    if (micro < r.rank) {
      ops.input_gradient(0, micro);
      delayed.push_back(micro);
    } else if (apart) {
      ops.input_gradient(0, micro);
      ops.weight_gradient(0, micro);
    } else {
      ops.backward(0, micro);
    }
  }
  for (; !delayed.empty(); delayed.pop_back()) ops.weight_gradient(0, delayed.back());
}

}  // namespace

extern const ScheduleDef zb_h1_light{
    .name = "zb-h1-light",
    .summary = "ZB-H1 as released for Megatron-LM: most backwards whole, so less exact than zb-h1",
    .source = "sail-sg/zero-bubble-pipeline-parallelism, zbpp_light, 2023",
    .placement = Placement::Linear,
    .rank = zb_h1_light_order,
};

}  // namespace stagecraft::schedules
