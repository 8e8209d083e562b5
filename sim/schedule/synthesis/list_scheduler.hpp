#pragma once

#include "sim/schedule/synthesis/scheduling_problem.hpp"

namespace stagecraft::synthesis {

/// The policy of the list scheduler.
struct ListRules {
  std::vector<int> ahead;  ///< [piece]: the most micro-batches between the start of F and the end of W, with it.
  /// [piece]: among steps that are ready, the one with the least key runs first. Keys that rise by one from micro-batch
  /// to micro-batch make a repeating pattern, keys far apart an order of the stages.
  std::vector<double> forward, gradient, weight;
  double patience =
      0;  ///< A weight gradient starts when no other step is known to arrive within this share of its time.
  double courtesy =
      0;  ///< Another step waits when one with a lower key is known to arrive within this share of its time.
  bool whole = false;  ///< B instead of I and W.
};

/// Every rank, as soon as it is free, takes a step that is ready and fits; a weight gradient when there is none. A
/// forward fits when the rank can still finish its micro-batches oldest first (the banker's algorithm of Dijkstra, EWD
/// 623), so the oldest always finds room and nothing deadlocks while all stages have micro-batches of one size. Empty
/// when it deadlocks nevertheless, or when a rank has no room for one of each.
Rows list_schedule(const SchedulingProblem&, const ResourceLimits&, const ListRules&);

}  // namespace stagecraft::synthesis
