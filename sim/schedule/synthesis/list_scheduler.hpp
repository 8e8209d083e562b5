#pragma once

#include "sim/schedule/synthesis/problem.hpp"

namespace stagecraft::synthesis {

/// What steers the list scheduler.
struct Genes {
  std::vector<int> ahead;  ///< Of each piece: micro-batches between the start of F and the end of W, with it, at most.
  /// Of each piece. Among steps that are ready, the one with the least key runs first: keys that go up by one from one
  /// micro-batch to the next, counted in intervals between them, make a repeating pattern, keys far apart an order of
  /// the stages.
  std::vector<double> forward, gradient, weight;
  double patience = 0;  ///< A weight gradient starts when nothing else is known to come within this share of its time.
  double courtesy =
      0;               ///< Any other step, when one that goes before it is known to come within this share of its time.
  bool whole = false;  ///< B instead of I and W.
};

/// Every rank, as soon as it is free, takes a step that is ready and fits; a weight gradient when there is none. A
/// forward fits when the rank can still finish its micro-batches oldest first (the banker's algorithm of Dijkstra, EWD
/// 623): so the oldest of all always finds room, and nothing blocks for ever where all stages have micro-batches of one
/// size. Nothing when it blocks all the same, or a rank has no room even for one of each.
Rows list_schedule(const Problem&, const Limit&, const Genes&);

}  // namespace stagecraft::synthesis
