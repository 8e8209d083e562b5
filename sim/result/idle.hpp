#pragma once

#include <span>
#include <vector>

#include "sim/cost/pass_time.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"

namespace stagecraft {

/// A part of a run, on the clock of its Timeline.
struct TimeSpan {
  double begin = 0, end = 0;

  double length() const { return end - begin; }
  /// How much of [from, to) lies inside.
  double overlap(double from, double to) const;
};

/// What a device waits for. Together with its ops, these times sum to the length of the part of the run.
/// A lack of memory is no cause: what does not fit is refused before it runs.
struct IdleTimes {
  Seconds start_up;     ///< Input, before its first backward after a drain: the pipeline fills.
  Seconds input;        ///< Input that another device has yet to make, between start-up and drain.
  Seconds drain;        ///< Input, or nothing, after its last forward before a drain: the pipeline empties.
  Seconds receiver;     ///< A receiver that does not take the device's own message yet.
  Seconds other;        ///< Nothing that the Program knows: a real machine, or a device that stands still.
  TimeByClass exposed;  ///< Its own collectives, by axis, and messages that are on the wire; copies from host memory.

  Seconds bubble() const { return start_up + input + drain + receiver; }
  Seconds total() const { return bubble() + other + exposed.total(); }
};

/// The idle times of each device in each of the spans. All zero for a device that computes nothing. O(instructions).
std::vector<IdVector<DeviceId, IdleTimes>> idle_times(const Program&, const Timeline&, std::span<const TimeSpan>);
/// In the whole run.
IdVector<DeviceId, IdleTimes> idle_times(const Program&, const Timeline&);

/// From the first op, or collective of an op, to the last end.
TimeSpan whole_run(const Program&, const Timeline&);

/// The class of time in which a collective counts; null: a forward that is late on purpose waits as if its input were.
Seconds TimeByClass::*class_of(Purpose);

}  // namespace stagecraft
