#pragma once

#include <string>
#include <vector>

#include "sim/report/report.hpp"

namespace stagecraft {

/// A simulated and a measured number of the same thing.
struct Pair {
  std::string name;
  double simulated = 0, measured = 0;
  double spread = 0;      ///< Half the distance between the quartiles of what was measured.
  std::size_t count = 0;  ///< Readings behind `measured`, which is their median.

  /// (simulated - measured) / measured; 0 when both are nothing.
  double error() const;
};

/// How far a simulation is from what really happened, iterations behind the first.
struct Validation {
  Pair iteration;                  ///< Seconds from the end of an iteration to that of the next.
  std::vector<double> iterations;  ///< Each one measured.
  bool instructions_timed = true;  ///< Otherwise there is nothing of what follows but memory.
  std::vector<Pair> kinds;         ///< Seconds of one instruction of each kind: F, B, ..., and messages.
  std::vector<Pair> ops;           ///< The same by stage; largest share of the error of an iteration first.
  std::vector<Pair> devices;       ///< Seconds of computing in an iteration.
  std::vector<Pair> memory;        ///< Peak bytes of each device.
};

/// `report` is that of the simulation: it knows the memory.
Validation compare(const Program&, const Timeline& simulated, const Report& report, const Timeline& measured,
                   const Cluster&);

/// Whether the iteration time is within `tolerance`, and whether that is sure: half of the readings lie farther from
/// their median than the spread, so where a median at its ends would be judged otherwise another run may well be.
bool within(const Validation&, double tolerance);
bool is_sure(const Validation&, double tolerance);

/// The tables that `stagecraft validate` prints, and a verdict on the iteration time against `tolerance`.
std::string to_text(const Validation&, double tolerance);

}  // namespace stagecraft
