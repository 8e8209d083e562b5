#pragma once

#include <string>

#include "sim/experiment/run.hpp"
#include "sim/plan/stage_costs.hpp"

// Refuses what cannot run, or is not simulated: programs that are too large, times that are too long, groups whose
// behavior is not modeled, and what a real backend cannot do.

namespace stagecraft {

/// How many instructions the program of a plan will have, about: counted before anything of that size is made.
double instructions_of(const Plan&, int iterations, bool trains);

/// Estimated memory for simulating the program, with the order of work before it and the times after it.
Bytes memory_of(const Plan&, int iterations, bool trains);

/// Throws Infeasible when the program would be more than this machine can hold or than its numbers can count.
void check_size(const Plan&, int iterations, bool trains);

/// Throws Infeasible when a time is too long to compute with.
void check_finite(double seconds);
/// Returns the costs unchanged when check_finite() accepts the time of each stage.
StageCosts checked(StageCosts);

/// InputError for groups, divided states, flows or recomputation that are not modeled together.
void check_group_policy(const PlannedExperiment&);

/// Refuses what no real machine does: changes and jitter of the cluster, and plans of single tasks. Emulated
/// runs allow changes of devices, and, where the network follows the scenario (`links_change`), of links.
void check_real_run(const CompiledExperiment&, const std::string& backend, bool links_change = false);

/// This machine, and the devices that a real run reports.
std::string machine_text(const Timeline&);

}  // namespace stagecraft
