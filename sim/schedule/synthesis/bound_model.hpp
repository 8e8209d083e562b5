#pragma once

#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/schedule/synthesis/scheduling_problem.hpp"

namespace stagecraft::synthesis {

/// A message between two stages; it takes equally long for all micro-batches.
struct StageLink {
  int stage = 0;
  double time = 0;
};

/// Because of the capacity of a rank, the k-th F of a stage comes after the (k - limit)-th F, I or W of a stage of the
/// rank.
struct CapacityConstraint {
  int stage = 0;
  Kind kind = kForward;
  int limit = 0;
};

/// What holds for every order, with the quickest replica of each stage.
struct LowerBoundModel {
  LowerBoundModel(const SchedulingProblem&, const ResourceLimits&, bool split);

  double input(int s) const { return gradients[s] - weight[s]; }

  const SchedulingProblem& problem;
  std::vector<StageTimes> times;
  std::vector<double> gradients, weight;  ///< [stage]: I and W, or B if it is shorter; the part of it after I.
  std::vector<double> trip;               ///< [stage]: from the start of F to the end of the same micro-batch's I.
  std::vector<std::vector<StageLink>> before, after;         ///< [stage]: links from and to its neighbors.
  std::vector<std::vector<CapacityConstraint>> constraints;  ///< [stage]: what its F come after.
  std::vector<std::vector<CapacityConstraint>> constrains;   ///< [stage]: the F that come after a step of the stage.
  int most_micros = 0;

 private:
  void find_ahead();
  void measure_room(const Resource&);
  void add_constraint(int stage, const CapacityConstraint&);
  std::vector<std::vector<int>> ahead_;  ///< [stage]: stages of its rank on the way to it, with itself.
};

/// A piece of work of one machine with lower bounds of the time before it (head) and after it (tail).
struct Job {
  double head = 0, time = 0, tail = 0;
};

/// The end, tails included, of one machine that runs, with preemption, the available job with the longest tail: a lower
/// bound of every order (Carlier, EJOR 1982).
double one_machine(std::vector<Job>);

/// The earliest start of the k-th F, I and W of each stage (head), and the least time after the k-th last (tail),
/// counted in the order in which they run, for any order of micro-batches. For one rank, heads count from its own first
/// start and tails to its own last end, and only work counts that comes from the rank and returns to it.
class HeadTailTimes {
 public:
  static constexpr int kAll = -1;
  HeadTailTimes(const LowerBoundModel&, int rank);

  /// Adds the work of a stage as far as it comes from the rank.
  void add_jobs(int stage, std::vector<Job>&) const;
  double round_trip() const;  ///< The least time of one micro-batch.

 private:
  struct Times {
    std::vector<double> forward, input, weight;
  };
  bool counts(int s) const;
  bool same_micro_batches(int a, int b) const;
  bool takes_part(int s, const TiedSum&) const;
  double exchange_of(int s) const;
  double after_gradients(int s) const;
  void forward_head(int s, int k);
  double end_of(int s, Kind, int k) const;
  double constrained_tail(int s, Kind, int n) const;
  void gradient_head(int s, int k);
  void gradient_tail(int s, int n);
  void forward_tail(int s, int n);

  static constexpr double kNowhere = -kInfinity;  // The work does not return to the rank.
  const LowerBoundModel& model_;
  const SchedulingProblem& p_;
  int rank_;
  std::vector<Times> head_;    ///< [stage]: by k, the earliest starts of F and I and ends of W. Empty: not from here.
  std::vector<Times> tail_;    ///< [stage]: by n-th last, the least times after the end.
  std::vector<double> after_;  ///< [stage]: the least time after its last gradient.
};

}  // namespace stagecraft::synthesis
