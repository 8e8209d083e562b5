#pragma once

#include <optional>

#include "sim/experiment/run.hpp"
#include "sim/schedule/builder.hpp"

namespace stagecraft {

/// Repeats one iteration of an order on `ideal`, with the weights, messages and memory of the experiment: the objective
/// of schedules that are searched for. Nothing if the order cannot run.
std::optional<OrderResult> evaluate_order(const Schedule& iteration, const PlannedExperiment&, const Cluster&);

}  // namespace stagecraft
