#pragma once

#include <string>
#include <vector>

#include "sim/output/core_waits.hpp"
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
  std::vector<double> replayed;     ///< Each of them, simulated with the operation times measured in it; may be empty.
  bool instructions_timed = true;   ///< Otherwise memory is all that follows.
  std::vector<Pair> kinds;          ///< Seconds of one instruction of each kind: F, B, ..., and messages.
  std::vector<Pair> ops;            ///< Seconds of one instruction by stage and kind; largest share of the error first.
  std::vector<Pair> devices;        ///< Seconds of computation in an iteration.
  std::vector<Pair> memory;         ///< Peak bytes of each device.
  std::vector<Pair> totals;         ///< Seconds of all computations of a kind in an iteration.
  Pair messages;                    ///< Such a total of the messages that an op waited for last.
  std::vector<CoreWaits> waits;     ///< What each iteration waited for cores; empty where that is not known.
  std::vector<std::string> notes;   ///< What the simulation assumes; printed, and in the file.
  std::vector<std::string> doubts;  ///< Why no verdict is certain, whatever the readings say; it prints them.
};

/// `report` belongs to the simulation and has its memory.
Validation compare(const Program&, const Timeline& simulated, const Report& report, const Timeline& measured,
                   const Cluster&);

/// Takes over the same program, simulated with the operation times that were measured. So the error has two parts: the
/// model's, of each iteration against its own simulation, and the costs', of the simulation against the median of
/// these.
void add_replay(Validation&, const Program&, const Timeline& replayed);

/// Relative errors of iterations that come from order, overlap and messages: their median, and the largest.
struct ModelError {
  double median = 0, worst = 0;
};
ModelError model_error(const Validation&);  ///< `replayed` must not be empty.
/// The relative error of the iteration that comes from the costs of operations. `replayed` must not be empty.
double cost_error(const Validation&);

/// Whether the iteration time is within `tolerance`, and whether that is certain: half of the readings are farther from
/// their median than the spread, so where a median at either end of the spread changes the verdict, another run may.
bool within(const Validation&, double tolerance);
bool is_sure(const Validation&, double tolerance);

/// The tables that `stagecraft validate` prints, and a verdict on the iteration time against `tolerance`.
std::string to_text(const Validation&, double tolerance);

/// The parts of that text: its notes, a table of seconds (the first dozen of them; empty without any), and the verdict,
/// with the doubts, errors that cancel each other out, and what comes from the model and what from the costs.
std::string notes_text(const Validation&);
std::string times_text(const char* title, std::vector<Pair>);
std::string verdict_text(const Validation&, double tolerance);

/// "+1.5 %"
std::string signed_percent(double share);

}  // namespace stagecraft
