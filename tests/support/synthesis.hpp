#pragma once

#include "sim/schedule/synthesis/scheduling_problem.hpp"
#include "tests/support/schedules.hpp"

namespace stagecraft::test {

/// A backward in halves of their own, and a stash of one byte.
inline StageCost halves(double forward, double input, double weight) {
  StageCost cost = times(forward, input + weight);
  cost.input_gradient = Seconds{input};
  cost.weight_gradient = Seconds{weight};
  cost.memory.stash = Bytes{1};
  return cost;
}

/// Room on each rank for `micro_batches` micro-batches of a stage.
inline synthesis::ResourceLimits at_most(const synthesis::SchedulingProblem& p, double micro_batches,
                                         double freed_at_input = 0) {
  synthesis::Resource r;
  r.stash.assign(p.rank_of.size(), 1);
  r.boundary = r.stash;
  r.capacity.assign(p.stages.size(), micro_batches);
  r.freed_at_input = freed_at_input;
  return {r};
}

}  // namespace stagecraft::test
