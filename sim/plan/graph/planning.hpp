#pragma once

#include <string>
#include <vector>

#include "sim/plan/graph/problem.hpp"
#include "sim/plan/planner.hpp"

namespace stagecraft::graph {

/// `micro_batch_size`, `devices`, `memory`, `bandwidth`, `straight`: the fields of planners of graphs.
std::vector<config::Field> common_fields();

/// A scenario, and the devices for it in the order of the stages.
struct Question {
  Problem problem;
  std::vector<DeviceId> devices;
  std::vector<int> type_of = {};  ///< Type of each device, as an index into Problem::of_type.
  bool slowest = false;           ///< Too many types to distinguish: all devices count as the slowest.
};

/// The reason for a bound, extended by its assumptions.
std::string reason_for(const Question&, const std::string& reason);
Question question_of(const PlannerInput&);

/// Sorts parts so that inputs come before readers and each branch ends before the next begins.
std::vector<Part> branch_by_branch(const Problem&, const std::vector<Part>&);

/// The plan of these parts on the devices, with the memory they need.
Planned planned(const PlannerInput&, const Question&, const std::vector<Part>&, bool sequential);

/// Throws Infeasible because no stages of this kind fit into memory.
[[noreturn]] void refuse(const PlannerInput&, const Question&, const std::string& kind, const std::string& help);

}  // namespace stagecraft::graph
