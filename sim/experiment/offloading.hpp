#pragma once

#include "sim/experiment/run.hpp"

namespace stagecraft {

/// InputError for a plan that offloads where it cannot: without host memory, or what nothing says how to move.
void check_offload(const PlannedExperiment&);

/// States of the optimizer that the host keeps for each device of a stage.
Bytes states_on_host(const PlannedExperiment&, const Stage&);

/// Has hosts update the share of the parameters that `plan.offload.optimizer` says: what devices keep, and the time of
/// their updates.
void offload_optimizer(PlannedExperiment&);

/// Adds the copies of `plan.offload` to the program, and the states that hosts keep. What waits and what moves follows
/// from timelines on `ideal`, as the cluster is rated. The last of them says when memory is free: Infeasible
/// "host-memory" when a host needs more than it has.
void offload(CompiledExperiment&);

}  // namespace stagecraft
