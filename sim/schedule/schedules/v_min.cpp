#include "sim/schedule/v_shape/blocks.hpp"

namespace stagecraft::schedules {
namespace {

// One step a rank on every way: no activation can live shorter.
Schedule v_min_whole(const ScheduleInput& in) {
  const int p = in.layout.ranks(), gap = p % 3 == 0 ? 2 : 0;  // A multiple of three would collide.
  std::vector<VBlock> blocks;
  for (int r = 0; r < p; ++r) blocks.push_back({r, 2 * p - r - 1, 2 * p + gap + r, 4 * p + gap - r - 1});
  return from_v_blocks(in, blocks);
}

}  // namespace

extern const ScheduleDef v_min{
    .name = "v-min",
    .summary = "Two stages on each device, in a V: a third of the memory of 1F1B",
    .source = "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024; sail-sg, zbv_greedy.py",
    .placement = Placement::V,
    .chunks = {2, 2},
    .whole = v_min_whole,
};

}  // namespace stagecraft::schedules
