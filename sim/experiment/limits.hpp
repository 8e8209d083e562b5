#pragma once

#include <string>

#include "sim/experiment/run.hpp"
#include "sim/plan/stage_costs.hpp"

namespace stagecraft {

/// How many instructions the program of a plan will have, about: counted before anything of that size is made.
double instructions_of(const Plan&, int iterations, bool trains);

/// What the largest of that takes on a simulator, with the order of work before it and the times behind it.
Bytes memory_of(const Plan&, int iterations, bool trains);

/// Throws Infeasible when the program would be more than this machine can hold or than its numbers can count.
void check_size(const Plan&, int iterations, bool trains);

/// Throws Infeasible when a time has grown beyond what can be reckoned with.
void check_finite(double seconds);
/// The costs themselves, when their times are within that.
StageCosts checked(StageCosts);

/// Refuses what no real machine does: changes and jitter of the cluster, and plans of single tasks.
void check_real_run(const CompiledExperiment&, const std::string& backend);

/// This machine, and the devices that a real run reports.
std::string machine_text(const Timeline&);

}  // namespace stagecraft
