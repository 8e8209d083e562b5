#pragma once

#include <string>

#include "sim/schedule/synthesis/scheduling_problem.hpp"

namespace stagecraft::synthesis {

/// Times that no order of this work on these ranks can beat, and why.
struct LowerBound {
  double makespan = 0, period = 0;
  std::string makespan_reason, period_reason;
};

/// The largest of several lower bounds that hold for every order:
/// - each rank as one machine with heads and tails of its steps and preemption (Carlier, EJOR 1982); the k-th
/// micro-batch
///   cannot come before k have passed each stage on the way, nor before the micro-batches that it has no room next to
///   have left;
/// - for the period the same bound from the first start to the last end of one rank's row, which ends an iteration
/// before
///   it begins the next: work that comes from it and returns to it lies in between, on every machine;
/// - the round trip of one micro-batch;
/// - the messages that one network card sends;
/// - what a rank may hold, in whole parts of micro-batches, against the least time that each is held.
/// O(ranks * steps log steps); only the quick bounds when there are very many.
LowerBound lower_bound(const SchedulingProblem&, const ResourceLimits&, bool split = true);

}  // namespace stagecraft::synthesis
