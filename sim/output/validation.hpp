#pragma once

#include <string>
#include <vector>

#include "sim/result/report.hpp"

namespace stagecraft {

/// A simulated and a measured value of one quantity.
struct Pair {
  std::string name;
  double simulated = 0, measured = 0;
  double spread = 0;      ///< Half the interquartile range of the readings.
  std::size_t count = 0;  ///< Number of readings; `measured` is their median.

  /// (simulated - measured) / measured; 0 when both are zero.
  double error() const;
};

/// How far a simulation is from a real run, from the second iteration on.
struct Validation {
  Pair iteration;                   ///< Seconds from the end of an iteration to the end of the next.
  std::vector<double> iterations;   ///< Every measured iteration.
  bool instructions_timed = true;   ///< Otherwise memory is all that follows.
  std::vector<Pair> kinds;          ///< Seconds of one instruction of each kind: F, B, ..., and messages.
  std::vector<Pair> ops;            ///< Seconds of one instruction by stage and kind; largest share of the error first.
  std::vector<Pair> devices;        ///< Seconds of computation in an iteration.
  std::vector<Pair> memory;         ///< Peak bytes of each device.
  std::vector<std::string> notes;   ///< What the simulation assumes; printed, and in the file.
  std::vector<std::string> doubts;  ///< Notes that leave no verdict certain, whatever the readings say.
};

/// `report` belongs to the simulation and has its memory.
Validation compare(const Program&, const Timeline& simulated, const Report& report, const Timeline& measured,
                   const Cluster&);

/// Whether the iteration time is within `tolerance`, and whether that is certain: half of the readings are farther from
/// their median than the spread, so where a median at either end of the spread changes the verdict, another run may.
bool within(const Validation&, double tolerance);
bool is_sure(const Validation&, double tolerance);

/// The tables that `stagecraft validate` prints, and a verdict on the iteration time against `tolerance`.
std::string to_text(const Validation&, double tolerance);

/// The parts of that text: its notes, a table of seconds (the first dozen of them; empty without any), and the verdict.
std::string notes_text(const Validation&);
std::string times_text(const char* title, std::vector<Pair>);
std::string verdict_text(const Validation&, double tolerance);

}  // namespace stagecraft
