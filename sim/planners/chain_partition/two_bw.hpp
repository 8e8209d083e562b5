#pragma once

#include <vector>

#include "sim/cost/stage_memory.hpp"

namespace stagecraft::chain_partition {

/// One stage of a pipeline of PipeDream-2BW, for one micro-batch of one pipeline.
struct TwoBwStage {
  double seconds = 0;             ///< Seconds of forward and backward.
  double received = 0, sent = 0;  ///< Bytes over its two boundaries in the forward direction.
  MemoryUnits memory{};           ///< Memory of the stage without full recomputation.
};

/// `width` parallel pipelines, whose stages all-reduce gradients once in `micro_batches` micro-batches.
struct TwoBwPipeline {
  std::vector<TwoBwStage> stages;
  int width = 1, micro_batches = 1;
  bool recompute = false;
  double depth_bandwidth = 1, width_bandwidth = 1;  ///< Bytes a second between stages, and among replicas.
};

/// Seconds between two micro-batches (Narayanan et al., ICML 2021, appendix A.1.1):
/// max over stages of max(c T + sum of messages, all-reduce / micro-batches), c = 4/3 when it recomputes.
double period_of(const TwoBwPipeline&);

/// Bytes of the fullest device (A.1.2): 2 W + d A + d I of a stage, or 2 W + A + d I when it recomputes, where d is the
/// depth, A its stash and I what it receives; plus gradients, optimizer and the recomputed part of attention, which the
/// paper ignores.
double memory_of(const TwoBwPipeline&);
double memory_of(const TwoBwPipeline&, const TwoBwStage&);  ///< Bytes of a device of one stage.

/// First element of each of `parts` consecutive, non-empty parts with the least largest sum.
std::vector<int> cut_evenly(const std::vector<double>& amounts, int parts);
/// Cuts evenly when an element has a different amount in each part: amounts[part][element].
std::vector<int> cut_evenly(const std::vector<std::vector<double>>& amounts);

}  // namespace stagecraft::chain_partition
