#pragma once

namespace stagecraft::real {

/// How the steady clock here relates to that of the first process, at one moment.
struct ClockReading {
  double here = 0, offset = 0, uncertainty = 0;  ///< Seconds; `offset` is to be added here.
};

/// All processes read at the same time. Of many messages to and fro the fastest counts: the first process looked at
/// its clock somewhere within it, so the offset is off by half of it at most.
ClockReading read_clock();

/// A time here on the first clock, when the two drift evenly from one reading to the other.
double on_first_clock(double seconds, const ClockReading& before, const ClockReading& after);

}  // namespace stagecraft::real
