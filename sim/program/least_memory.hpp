#pragma once

#include "sim/plan/stage_costs.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// The part of a stash that waits for the recomputation of its micro-batch, where the order has one.
Bytes stash_before_recompute(const StageShape&, const StageCost&);

/// [device]: what it needs at least for the order, in which every stage is trained: resident memory, one buffer of
/// weights, and the stashes along its row. memory_peaks() of the program adds messages and other buffers. O(ops).
IdVector<DeviceId, Bytes> least_memory(const Schedule&, const Plan&, const StageCosts&, int iterations);

}  // namespace stagecraft
