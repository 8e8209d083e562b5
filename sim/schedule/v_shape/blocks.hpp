#pragma once

#include <array>
#include <vector>

#include "sim/schedule/builder.hpp"

namespace stagecraft {

/// The steps in which the first micro-batch runs on a rank: F of chunk 0, F of chunk 1, I of chunk 1, I of chunk 0. The
/// next micro-batch follows six steps later.
using VBlock = std::array<int, 4>;

/// A V-shaped schedule from a building block for each rank: repeated for all micro-batches, compacted twice without a
/// higher peak of memory, weight gradients in the free steps (Qi et al., Pipeline Parallelism
/// with Controllable Memory, NeurIPS 2024). O(ops log ops) where, as on the library's blocks, few moves break the peak.
Schedule from_v_blocks(const ScheduleInput&, const std::vector<VBlock>&);

/// Building blocks in which both ways down the ranks take a number of steps for each rank, one number up to some rank
/// and another after it, and both ways up take one step; no rank has two ops in one step. Blocks with the most
/// activations come first, but none with more than `max_alive` on a rank (the search of sail-sg, v_auto_schedule.py).
std::vector<std::vector<VBlock>> v_block_shapes(int ranks, double max_alive);

}  // namespace stagecraft
