#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/columns.hpp"
#include "sim/core/quantity.hpp"
#include "sim/output/picture.hpp"
#include "sim/program/timeline.hpp"

namespace stagecraft {

/// One training run, with the loss of the real weights after every few updates.
struct Curve {
  std::uint64_t seed = 1;
  bool diverged = false;
  std::vector<Evaluation> evaluations;
  std::vector<double> losses;  ///< Loss of each update, as the pipeline saw it.
};

/// One training method with runs over several seeds and the time of an update. Simulated and measured times are never
/// mixed.
struct MethodRuns {
  std::string name;      ///< "sync", "pipeoptim", "stash@4".
  std::string spelt;     ///< Schedule, policy and micro-batches of each update, for people.
  Seconds update, fill;  ///< Simulated time of one more update, and until the pipeline is full.
  Seconds measured;      ///< Measured time of one more update, on threads; 0 where it was not measured.
  Bytes memory;          ///< Simulated peak of the fullest device.
  std::vector<Curve> curves;
};

/// Methods that are compared; the first is the baseline.
struct Convergence {
  int samples_per_update = 1;
  int runs_asked = 0;  ///< Methods times seeds; an interrupted comparison has fewer runs.
  std::vector<MethodRuns> methods;
  std::vector<std::string> notes;  ///< Why measured times differ from simulated ones on this machine.
};

/// Runs that are complete.
int runs_of(const Convergence&);

/// Updates until the mean loss of three evaluations is first at or below `target`; nothing where it never is.
std::optional<int> updates_to(const Curve&, double target);

/// How a method compares with the baseline, for one target.
struct Standing {
  std::string method;
  bool is_baseline = false;
  double target = 0;
  int reached = 0, total = 0;             ///< Runs.
  double updates = 0, low = 0, high = 0;  ///< Median and range over seeds; infinite where the target is not reached.
  double cost = 0, cost_low = 0, cost_high = 0;  ///< Updates / updates of the baseline, and 90 % of bootstrap
                                                 ///< samples; NaN where the baseline never reaches the target.
  double hardware = 0;       ///< Simulated time of an update of the baseline / time of an update of this method.
  double time = 0;           ///< Simulated seconds to the target.
  double measured_time = 0;  ///< Measured seconds to the target; 0 where it was not measured.
  double speed_up = 0, measured_speed_up = 0;  ///< Seconds of the baseline over seconds of this method.
};
Standing standing(const Convergence&, std::size_t method, double target);

/// Final losses, and a table for each target: statistical and hardware efficiency, and the cost up to which a method
/// pays.
std::string to_text(const Convergence&, const std::vector<double>& targets);
/// One row for each evaluation of each run.
std::string convergence_csv(const Convergence&);
std::vector<FileColumn> convergence_columns();
/// One row for each target and method.
std::string tta_csv(const Convergence&, const std::vector<double>& targets);
std::vector<FileColumn> tta_columns();

enum class LossOver { Updates, Simulated, Measured };
/// Mean loss over updates, simulated time or measured time, a line for each method.
Picture convergence_picture(const Convergence&, const std::string& title, LossOver, const PictureSize&);
/// Pictures over updates, simulated time and, where it was measured, measured time, next to each other.
Picture convergence_pictures(const Convergence&, const std::string& title, const PictureSize&);

}  // namespace stagecraft
