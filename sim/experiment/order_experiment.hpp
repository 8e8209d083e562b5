#pragma once

#include "sim/experiment/run.hpp"

namespace stagecraft {

/// The order of work of the plan, checked without a look for cycles: compile() finds these.
Schedule order_experiment(const PlannedExperiment&);

/// An order that repeats its first iteration, with another number of them.
Schedule with_iterations(const Schedule&, const Plan&, int iterations_of_order, int iterations);

/// Throws where the order cannot run on the plan.
void check_order(const Schedule&, const PlannedExperiment&, bool with_cycles);

}  // namespace stagecraft
