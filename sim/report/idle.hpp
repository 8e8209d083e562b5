#pragma once

#include <vector>

#include "sim/program/program.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// What a device waits for over the whole run. Together with its busy time, these times sum to the run's length.
/// Memory is no cause: what does not fit is refused before it runs.
struct IdleTimes {
  Seconds start_up;  ///< Input, before its first backward after a drain: the pipeline fills.
  Seconds input;     ///< Input that another device has yet to make, between start-up and drain.
  Seconds drain;     ///< Input, or nothing, after its last forward before a drain: the pipeline empties.
  Seconds transfer;  ///< Messages and collectives on the wire.
  Seconds receiver;  ///< A receiver that does not take the device's own message yet.
  Seconds other;     ///< Nothing that the Program knows: a real machine, or a device that stands still.

  Seconds collective;  ///< The part of `transfer` in which a collective is on the wire.

  Seconds total() const { return start_up + input + drain + transfer + receiver + other; }
};

/// All zero for a device that computes nothing. O(instructions).
IdVector<DeviceId, IdleTimes> idle_times(const Program&, const Timeline&);

}  // namespace stagecraft
