#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/experiment/run.hpp"
#include "sim/report/choice_table.hpp"

namespace stagecraft {

/// Where a schedule wants the stages: Linear if any place will do.
Placement placement_of(const ScheduleDef&);

/// A plan, before an order of work is chosen for it.
struct Candidate {
  PlanSpec plan;
  Placement placement = Placement::Linear;
  /// The schedule that divides the micro-batches between two directions; null for pipelines in one direction.
  const ScheduleDef* both_ways = nullptr;
  Choice bound;  ///< What the plan is made of. No order of work has a shorter period or needs less memory.
};

struct CandidateOptions {
  std::vector<const ScheduleDef*> schedules;  ///< The schedules that will run the plans.
  int iterations = 1;                         ///< Iterations of one simulation.
  double most_instructions = 0;               ///< Limit of one simulation.
};

struct Candidates {
  std::vector<Candidate> list;  ///< Shortest bound first.
  int plans = 0;                ///< All plans tried, even if their weights do not fit or they do not exist.
  int too_large = 0;            ///< Plans whose weights, gradients and optimizer state alone exceed a device.
  Bytes least_memory;           ///< Smallest need of the fullest device among the `too_large` plans.
  bool cut_short = false;       ///< Some plans were too large to simulate.
};

/// Plans for the model, the cluster and the samples in an iteration of an experiment, with every sensible number of
/// stages, replicas and samples in a micro-batch, with and without recomputation: plans of `balanced` on the fastest
/// devices for each placement of the schedules, and the plan of each other planner on all devices.
Candidates candidate_plans(const PlannedExperiment&, const CandidateOptions&,
                           const std::function<void(const std::string&)>& progress);

}  // namespace stagecraft
