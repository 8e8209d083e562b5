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
/// 1982);
///   the k-th micro-batch cannot come before k have passed each stage on the way;
/// - the same for the row of a rank alone, which is through with an iteration before it begins the next; where its
///   tied weights wait for another rank, for the work of that one in between;
/// - one micro-batch there and back;
/// - the messages that one network card sends;
/// - what a rank may hold against how long each micro-batch holds it at least.
/// O(ranks * steps log steps).
Bound lower_bound(const Problem&, const Limit&, bool split = true);

}  // namespace stagecraft::synthesis
