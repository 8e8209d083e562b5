#pragma once

#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/schedule/synthesis/lower_bound.hpp"
#include "sim/schedule/synthesis/order_clock.hpp"

namespace stagecraft::synthesis {

/// What the search minimizes, and how long it may take.
struct SearchGoal {
  bool period = true;   ///< The period; else the first iteration. The other one decides between equals.
  bool split = true;    ///< Whether backwards may be split into I and W.
  double effort = 1e8;  ///< Steps that may be evaluated.
  std::uint64_t seed = 1;
  double value(const Score& s) const { return period ? s.period + kLess * s.makespan : s.makespan + kLess * s.period; }
  static constexpr double kLess = 1e-4;
};

/// An order and how long it takes.
struct FoundOrder {
  Rows rows;
  Score score;
  double cost = kInfinity;
};

/// Orders that fit, best first and no two equal: the given ones that fit, list schedules improved from several starting
/// policies, and the best of them with steps moved along the critical path (simulated annealing over critical blocks,
/// then every order of short windows). Ends early when the bound is reached. Deterministic.
std::vector<FoundOrder> search(const SchedulingProblem&, const ResourceLimits&, const SearchGoal&,
                               const std::vector<Rows>& seeds, const LowerBound&);

}  // namespace stagecraft::synthesis
