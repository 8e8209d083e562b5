#pragma once

#include "sim/program/writer.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// Communication in the way of computation: before an op a device posts, as one group, the sends of the op before and
/// the receives the op needs, and waits for the whole group (ncclGroup, batch_isend_irecv).
/// Throws Infeasible "deadlock" with the shortest cycle of devices that wait for each other.
void lower_blocking(const Schedule&, ProgramWriter&);

}  // namespace stagecraft
