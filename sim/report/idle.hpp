#pragma once

#include <vector>

#include "sim/program/program.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// Why a device does not compute, over the whole run. With the time in which it does, they sum to the run's length.
/// Memory is no cause: what does not fit is refused before it runs.
struct IdleTimes {
  Seconds start_up;  ///< For input, until it first turns back after a drain: the pipeline fills.
  Seconds input;     ///< For what another device makes, between the other two.
  Seconds drain;     ///< For input, or for nothing, behind its last forward before a drain: the pipeline empties.
  Seconds transfer;  ///< For what is on the wire.
  Seconds receiver;  ///< For a message of its own that nobody takes yet.
  Seconds other;     ///< For nothing that the Program knows: a real machine, or a device that stands still.

  Seconds total() const { return start_up + input + drain + transfer + receiver + other; }
};

/// All zero for a device that computes nothing. O(instructions).
IdVector<DeviceId, IdleTimes> idle_times(const Program&, const Timeline&);

}  // namespace stagecraft
