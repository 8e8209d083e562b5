#pragma once

#include <array>
#include <vector>

#include "sim/schedule/builder.hpp"

namespace stagecraft {

/// When a micro-batch runs on a rank, in steps of one op: forward of the first chunk, of the second, input gradient of
/// the second, of the first. Repeats every six steps for the next micro-batch.
using VBlock = std::array<int, 4>;

/// A schedule of two chunks, there and back, from a building block for each rank: repeated for all micro-batches, moved
/// together twice without a higher peak of memory, weight gradients in the free steps (Qi et al., Pipeline Parallelism
/// with Controllable Memory, NeurIPS 2024). O(ops log ops) where, as on the library's blocks, few moves break the peak.
Schedule from_v_blocks(const ScheduleInput&, const std::vector<VBlock>&);

/// The building blocks in which both ways down the ranks take a number of steps for each of them, one number up to some
/// rank and another behind it, and both ways up one step; without two ops of a rank in one step. Those that keep most,
/// but on no rank more than `most` activations when repeated, first (the search of sail-sg, v_auto_schedule.py).
std::vector<std::vector<VBlock>> v_block_shapes(int ranks, double most);

}  // namespace stagecraft
