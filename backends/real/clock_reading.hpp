#pragma once

namespace stagecraft::real {

/// How the steady clock here relates to that of the first process, at one moment.
struct ClockReading {
  double here = 0, offset = 0, uncertainty = 0;  ///< Seconds; `offset` is to be added to times here.
};

/// From a question and its answer: the first process looked at its clock somewhere between the two, so the middle is
/// off by half of that at most.
inline ClockReading clock_reading(double asked, double there, double answered) {
  const double half = (answered - asked) / 2;
  return {asked + half, there - (asked + half), half};
}

/// A time here on the first clock, when the two drift evenly from one reading to the other.
inline double on_first_clock(double seconds, const ClockReading& before, const ClockReading& after) {
  const double apart = after.here - before.here;
  const double drift = apart > 0 ? (after.offset - before.offset) / apart : 0;
  return seconds + before.offset + drift * (seconds - before.here);
}

}  // namespace stagecraft::real
