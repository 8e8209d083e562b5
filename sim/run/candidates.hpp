#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sim/report/choice_table.hpp"
#include "sim/run/scenario.hpp"
#include "sim/schedule/builder.hpp"

namespace stagecraft {

/// Where a schedule wants the stages: Linear where it does not mind.
Placement placement_of(const ScheduleDef&);

/// A plan, before anybody says in which order it works.
struct Candidate {
  std::string plan;  ///< The map of `plan`, as text.
  Placement placement = Placement::Linear;
  std::string both_ways = {};  ///< In both directions: the schedule that divides the micro-batches among them.
  /// What it is made of; period and memory are what no order of work can beat.
  Choice bound;
};

struct CandidateOptions {
  std::string file;
  std::vector<std::string> sets;
  std::vector<const ScheduleDef*> schedules;  ///< That are to run them.
  int iterations = 1;                         ///< Of a simulation.
  double most_instructions = 0;               ///< Of a simulation.
};

struct Candidates {
  std::vector<Candidate> list;  ///< By bound, shortest first.
  int plans = 0;                ///< Looked at; some have too little memory for weights alone, or do not exist.
  bool cut_short = false;       ///< Some were too large to simulate.
};

/// Plans for the model, the cluster and the samples in an iteration of a scenario, with every sensible number of
/// stages, replicas and samples in a micro-batch, with and without recomputation: those of `balanced` on the fastest
/// devices where not all are used, for each placement of the schedules, and that of each other planner on all of them.
Candidates candidate_plans(const CandidateOptions&, const std::function<void(const std::string&)>& progress);

}  // namespace stagecraft
