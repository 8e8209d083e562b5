#pragma once

#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/experiment/run.hpp"

// Notes on an experiment for the reader of its numbers, which tables and reports print: implausible figures, and
// what is not simulated.

namespace stagecraft {

/// Implausible figures of a cluster, such as from a mistaken unit: a line each, with how many types or links have it.
std::vector<std::string> suspicious_units(const Cluster&);

/// Notes for the reader of the numbers, a line each: quantities that no machine has, devices that have nothing to do
/// although they are not excluded, what of groups a profile lacks, and gradients of tied weights whose exchange is not
/// simulated because the schedule never flushes.
std::vector<std::string> remarks(const PlannedExperiment&);
std::vector<std::string> remarks(const CompiledExperiment&);

/// The notes before anything runs; only those on the cluster if there is no plan.
std::vector<std::string> remarks(const Experiment&);

/// Bytes of tied gradients whose exchange between devices before each update is not simulated.
Bytes unexchanged_gradients(const CompiledExperiment&);

}  // namespace stagecraft
