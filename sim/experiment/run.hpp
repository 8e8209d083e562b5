#pragma once

#include <memory>
#include <string>

#include "sim/experiment/experiment.hpp"
#include "sim/plan/stage_costs.hpp"
#include "sim/planners/shared/planner.hpp"
#include "sim/program/check.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"
#include "sim/result/report.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

struct RunView;

/// An experiment with its plan.
struct PlannedExperiment {
  Experiment experiment;
  Plan plan;
  PlannerReport report;  ///< What the planner says of its plan.
  Seconds planning;      ///< Wall time of the planner.
  StageCosts costs;

  const ModelGraph& model() const { return *experiment.model; }
  const Cluster& cluster() const { return *experiment.cluster; }
};

/// An experiment with everything that a backend needs.
struct CompiledExperiment : PlannedExperiment {
  Schedule schedule;
  Program program;
  IdVector<DeviceId, MemoryNeed> peaks = {};  ///< Memory of devices whose stashes go to host memory, with the messages
                                              ///< on their way; empty: memory_peaks() of the program.
};

/// What each device needs at its worst moment.
IdVector<DeviceId, MemoryNeed> memory_peaks(const CompiledExperiment&);

/// Plans and orders are made for the cluster as rated, not for what happens to it during the run.
Cluster without_changes(Cluster);

struct Outcome {
  Timeline timeline;
  Report report;  ///< Empty if another process has the timeline.
};

/// What the metrics of the run are computed from; it must not outlive the two.
RunView view_of(const CompiledExperiment&, const Outcome&);

PlannedExperiment plan_experiment(const Experiment&);

/// The plan of an experiment that differs from the planned one in its schedule and its iterations alone: the same plan,
/// unless that schedule wants stages elsewhere or has no flush.
PlannedExperiment plan_again(const PlannedExperiment& planned, const Experiment&);

/// How the plan is lowered: as the experiment says, with the buffers of its planner where it says none. Eager senders
/// know nothing of the buffers of their receivers, so with them there is no limit.
LoweringOptions lowering_of(const PlannedExperiment&);

/// Orders and lowers the plan, and checks the program. `known_order`: the order, where a compile() of this plan, folded
/// or not, found it before; null: it is made.
CompiledExperiment compile(PlannedExperiment, const Schedule* known_order = nullptr);
CompiledExperiment compile(const Experiment&);

/// The backend of runs that name none: simgrid is the reference, and fluid is many times faster on many devices, where
/// it shares links by the same rule. Only fluid has links with one queue.
inline constexpr int kMostDevicesOfReference = 64;
std::string default_backend(const Plan&, const Cluster&);

/// Runs it on a backend of the catalog. `one_thread`: a real run executes in the order of the program.
Timeline execute(const CompiledExperiment&, const std::string& backend, bool one_thread = false);

/// Runs it and measures the timeline.
Outcome run(const CompiledExperiment&, const std::string& backend);

/// The memory of the fullest device. Infeasible if a device needs more than it has, which messages under way decide.
Bytes fullest_device_memory(const Report&, const Cluster&);

}  // namespace stagecraft
