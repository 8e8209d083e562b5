#pragma once

#include <optional>
#include <string>

#include "sim/experiment/run.hpp"
#include "sim/schedule/builder.hpp"

namespace stagecraft {

/// Repeats one iteration of an order on `ideal`, with the weights, messages and memory of the experiment: the objective
/// of schedules that are searched for. Nothing if the order cannot run.
std::optional<OrderResult> evaluate_order(const Schedule& iteration, const PlannedExperiment&, const Cluster&);

/// run() on a backend that simulates, for searches that compare thousands of runs: the report has measure_times() and
/// the memory of each device.
Outcome run_to_compare(const CompiledExperiment&, const std::string& backend);

}  // namespace stagecraft
