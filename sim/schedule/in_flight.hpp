#pragma once

#include <vector>

#include "sim/plan/plan.hpp"

namespace stagecraft {

/// Samples each stage forwards before its first backward in kFkB order on a DAG, K = group * micro_batch_size:
///   a sink: K;   otherwise the most over its successors t of   i_t + K_t + 2 max(0, K - K_t),
/// rounded up to whole micro-batches and at most the mini-batch (GraphPipe, ASPLOS 2025, section 6).
/// `extra[e]` samples are added on edge e, so that a slow link does not starve a stage. O(stages + edges).
IdVector<StageId, int> in_flight_samples(const Plan&, const std::vector<double>& extra = {});

}  // namespace stagecraft
