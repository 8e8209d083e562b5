#pragma once

#include <vector>

#include "sim/program/program.hpp"
#include "sim/result/report.hpp"
#include "tools/stagecraft/asked_order.hpp"

namespace stagecraft {

/// Iterations of a timed order: the period is T(4) - T(3); the last one keeps the pipeline full.
inline constexpr int kTimedIterations = 5;

/// An order with the times of its ops, simulated on `ideal`.
struct TimedOrder {
  Program program;
  Cluster cluster;
  Timeline timeline;
  Report report;
  std::vector<double> peaks;  ///< Peak memory of each rank in stashes of a stage.
};

/// `delay` is the time of a message; `freed_at_input` is the share of a stash that its input gradient frees.
TimedOrder time_order(const AskedOrder&, const StageCost&, Seconds delay, double freed_at_input);

}  // namespace stagecraft
