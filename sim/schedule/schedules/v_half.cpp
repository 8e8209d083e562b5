#include "sim/schedule/v_shape/blocks.hpp"

namespace stagecraft::schedules {
namespace {

// Two steps a rank on the way there and one on the way back, so that an activation lives for half of 1F1B's time.
Schedule v_half_whole(const ScheduleInput& in) {
  const int p = in.layout.ranks(), gap = p % 2 == 0 ? 3 : 0;  // An even number of ranks would collide.
  std::vector<VBlock> blocks;
  for (int r = 0; r < p; ++r) blocks.push_back({2 * r, 3 * p - r - 2, 3 * p + gap + 2 * r - 1, 6 * p + gap - r - 2});
  return from_v_blocks(in, blocks);
}

}  // namespace

extern const ScheduleDef v_half{
    .name = "v-half",
    .summary = "Two stages on each device, in a V: half of the memory of 1F1B, half of its bubble",
    .source = "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024; sail-sg, zbv_greedy.py",
    .placement = Placement::V,
    .chunks = {2, 2},
    .whole = v_half_whole,
};

}  // namespace stagecraft::schedules
