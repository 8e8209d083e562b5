#pragma once

#include <vector>

#include "sim/core/random.hpp"
#include "sim/schedule/synthesis/search.hpp"

namespace stagecraft::synthesis {

/// The best orders so far, with what every part of the search needs to evaluate one.
class CandidatePool {
 public:
  CandidatePool(const SchedulingProblem&, const ResourceLimits&, const SearchGoal&, const LowerBound&);

  const SchedulingProblem& problem;
  const ResourceLimits& limit;
  const SearchGoal& goal;

  /// The cost of an order, infinite when it does not fit; it is kept when it is among the best.
  double add(const Rows&);
  double cost(const Rows& rows) { return goal.value(clock.score(rows, true)); }
  const std::vector<FoundOrder>& best() const { return best_; }

  /// The effort so far, in evaluated steps.
  double effort() const { return static_cast<double>(clock.steps_run()) + spent_; }
  void spend(double steps) { spent_ += steps; }
  /// Whether that effort is spent, or no order can be better than the best one.
  bool spent(double effort_allowed) const { return effort() >= effort_allowed || done(); }
  bool done() const;

  OrderClock clock;

 private:
  double bound_, spent_ = 0;
  std::vector<FoundOrder> best_;
};

// The parts of search(), in their order.

/// Hill climbing over the policies of list schedules, from several starting policies.
void improve_lists(CandidatePool&, Rng&, double effort);

/// Moves single steps within the critical path of an order, starting with `from`; half of the time together with the
/// same step on neighboring stages, since a warm-up or an end has to change its pattern on all ranks. Worse orders are
/// accepted with a probability that falls to zero while the effort is spent (simulated annealing over the critical
/// blocks of Nowicki and Smutnicki, Management Science 42, 1996).
void anneal(CandidatePool&, Rng&, const Rows& from, double effort);

/// Tries every order of short windows along the critical path of the best order until none is better.
void polish(CandidatePool&, double effort);

}  // namespace stagecraft::synthesis
