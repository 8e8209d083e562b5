#pragma once

#include <string>

#include "sim/schedule/synthesis/problem.hpp"

namespace stagecraft::synthesis {

/// What no order of this work on these ranks can beat, and why.
struct Bound {
  double makespan = 0, period = 0;
  std::string makespan_reason, period_reason;
};

/// The best of several bounds, none of which knows an order:
/// - each rank as one machine with the times before and behind its steps, which may be interrupted (Carlier, EJOR
///   1982); the k-th micro-batch cannot come before k have passed each stage on the way, nor before as many have left
///   as there is no room for;
/// - for the period the same from the first start to the last end of one rank's row, which is through with an iteration
///   before it begins the next: what comes from it and goes back to it lies in between, on every machine;
/// - one micro-batch there and back;
/// - the messages that one network card sends;
/// - what a rank may hold, in whole parts of micro-batches, against how long each is held at least.
/// O(ranks * steps log steps); with very many of them only what is quick.
Bound lower_bound(const Problem&, const Limit&, bool split = true);

}  // namespace stagecraft::synthesis
