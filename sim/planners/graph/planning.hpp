#pragma once

#include <string>
#include <vector>

#include "sim/core/common_unit.hpp"
#include "sim/planners/graph/problem.hpp"
#include "sim/planners/shared/planner.hpp"

namespace stagecraft::graph {

/// `micro_batch_size`, `devices`, `memory`, `bandwidth`, `straight`: the fields of planners of graphs.
std::vector<config::Field> common_fields();

/// A scenario, and the devices for it in the order of the stages.
struct GraphPlanInput {
  GraphProblem problem;  ///< Times and bandwidths are in `unit`.
  CommonUnit unit;
  std::vector<DeviceId> devices;
  std::vector<int> type_of = {};  ///< Type of each device, as an index into GraphProblem::of_type.
  bool slowest = false;           ///< Too many types to distinguish: all devices count as the slowest.
};

/// The reason for a bound, extended by its assumptions.
std::string reason_for(const GraphPlanInput&, const std::string& reason);
/// "stages take devices of one type in groups of 8".
std::string units_text(const GraphProblem&);
GraphPlanInput plan_input_of(const PlannerInput&);

/// Sorts parts so that inputs come before readers and each branch ends before the next begins.
std::vector<GraphStage> branch_by_branch(const GraphProblem&, const std::vector<GraphStage>&);

/// The plan of these parts on the devices, with the memory they need.
Planned planned(const PlannerInput&, const GraphPlanInput&, const std::vector<GraphStage>&, bool sequential);

/// Throws Infeasible because no stages of this kind fit into memory.
[[noreturn]] void refuse(const PlannerInput&, const GraphPlanInput&, const std::string& kind, const std::string& help);

}  // namespace stagecraft::graph
