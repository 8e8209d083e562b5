#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/experiment/run.hpp"
#include "sim/output/plan_table.hpp"
#include "sim/planners/shared/bounds.hpp"

// Runs the planners that were asked for on a scenario, for `stagecraft plan` and `stagecraft serve`.

namespace stagecraft {

struct PlanTableOptions {
  std::string planners = "all";   ///< Or names with commas between.
  std::string backend = "ideal";  ///< One that simulates.
  bool show = false;              ///< The plans too.
  int replay = 0;                 ///< Rows to simulate again on `fluid`.
  Seconds time{60};               ///< The longest time that one planner and the simulation of its plan compute.
  std::function<bool()> stop = [] { return false; };  ///< Whether to end with the rows that are complete.
};

/// What no plan of such micro-batches beats on the devices that the experiment may use. InputError if one of them
/// cannot run some layer. The result belongs to the cache.
const bounds::Bound& time_bound(const CompiledExperiment&, bounds::BoundCache&);

/// The planners of `PlanTableOptions` on the model, the cluster and the micro-batches of an experiment, with the
/// options that it shares with the planner there, each simulated with the schedule there. What has no plan, or one that
/// cannot run, or was stopped, is a row with its reason. `plans` gets the plan of each row that ran, by planner.
using PlansByPlanner = std::map<std::string, std::shared_ptr<const PlannedExperiment>>;
PlanTable compare_plans(const Experiment&, const PlanTableOptions&, PlansByPlanner* plans = nullptr);

}  // namespace stagecraft
