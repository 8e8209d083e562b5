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
/// with Controllable Memory, NeurIPS 2024). Each move looks at the steps it passes: O(ops * ranks) in practice.
Schedule from_v_blocks(const ScheduleInput&, const std::vector<VBlock>&);

}  // namespace stagecraft
