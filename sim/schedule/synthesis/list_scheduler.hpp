#pragma once

#include "sim/schedule/synthesis/problem.hpp"

namespace stagecraft::synthesis {

/// What steers the list scheduler.
struct Genes {
  std::vector<int> ahead;  ///< Of each stage: micro-batches between the start of F and the end of W at most.
  /// Of each stage. Among steps that are ready, the one with the least offset + micro-batch runs first: offsets in
  /// intervals between micro-batches make it a repeating pattern, offsets far apart an order of the stages.
  std::vector<double> forward_offset, gradient_offset, weight_offset;
  double patience = 0;  ///< A weight gradient starts when nothing else is known to come within this share of its time.
  double courtesy =
      0;               ///< Any other step, when one that goes before it is known to come within this share of its time.
  bool whole = false;  ///< B instead of I and W.
};

/// Every rank, as soon as it is free, takes a step that is ready and fits; a weight gradient when there is none. A
/// forward fits when it leaves room for one micro-batch of each later stage of the rank that holds none: so the oldest
/// micro-batch always finds room, and nothing blocks for ever (the banker's rule) where all stages have micro-batches
/// of one size. Nothing when it blocks all the same, or a rank has no room even for one of each.
Rows list_schedule(const Problem&, const Limit&, const Genes&);

}  // namespace stagecraft::synthesis
