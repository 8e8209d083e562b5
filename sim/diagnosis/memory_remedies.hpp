#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/experiment/run.hpp"

namespace stagecraft {

/// A change that may make a plan fit in memory.
struct MemoryRemedy {
  std::vector<std::string> sets;  ///< As options path=value; empty: none.
  Experiment experiment;
};

/// The experiment as it is, then what makes its plan need less memory, least change first: fewer messages on their way,
/// which keep the plan; the planner plans for less memory than there is, because it does not see these messages;
/// activations in host memory, where the cluster has that; recomputation; smaller micro-batches; states that replicas
/// divide.
std::vector<MemoryRemedy> memory_remedies(const Experiment&);

/// The devices that planners may use: those that the plan of the experiment names, or all.
std::vector<DeviceId> devices_to_use(const PlanSpec&, const Cluster&);

/// Planners and schedules that search may take long.
bool searches(const Experiment&);

/// compile_planned(plan_experiment()). Where the plan does not fit in memory, the help of the error names the options
/// that make it fit: of recomputation, micro-batch size, divided states and schedule the least change each, checked by
/// computing its memory. Plans and schedules that are searched for are not tried again.
CompiledExperiment compile_or_advise(
    const Experiment&, const std::function<CompiledExperiment(const PlannedExperiment&)>& compile_planned);
/// With compile().
CompiledExperiment compile_or_advise(const Experiment&);

}  // namespace stagecraft
