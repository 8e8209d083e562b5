#pragma once

#include <vector>

#include "sim/cost/stage_memory.hpp"

namespace stagecraft::msr {

/// One stage of a pipeline of PipeDream-2BW, for one micro-batch of one pipeline.
struct TwoBwStage {
  double seconds = 0;             ///< Forward and backward.
  double received = 0, sent = 0;  ///< Bytes over its boundaries forward.
  MemoryUnits memory{};           ///< Its stash is that of a stage that does not recompute all.
};

/// `width` pipelines side by side, whose stages exchange gradients once in `micro_batches`.
struct TwoBwPipeline {
  std::vector<TwoBwStage> stages;
  int width = 1, micro_batches = 1;
  bool recompute = false;
  double depth_bandwidth = 1, width_bandwidth = 1;  ///< Bytes a second: between stages, among replicas.
};

/// Seconds between two micro-batches (Narayanan et al., ICML 2021, appendix A.1.1):
/// max over stages of max(c T + sum of messages, all-reduce / micro-batches), c = 4/3 when it recomputes.
double period_of(const TwoBwPipeline&);

/// Bytes of the fullest device (A.1.2): 2 W + d A + d I of a stage, or 2 W + A + d I when it recomputes, where d is the
/// depth, A its stash and I what it receives; gradients, optimizer and what an attention recomputes, which the paper
/// leaves out, are added.
double memory_of(const TwoBwPipeline&);
double memory_of(const TwoBwPipeline&, const TwoBwStage&);  ///< Of a device of one of its stages.

/// First element of each of `parts` consecutive, non-empty parts with the least largest sum.
std::vector<int> cut_evenly(const std::vector<double>& amounts, int parts);
/// The same where amounts[part][element] is what an element is to each part.
std::vector<int> cut_evenly(const std::vector<std::vector<double>>& amounts);

}  // namespace stagecraft::msr
