#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/experiment/experiment.hpp"
#include "sim/sweep/points.hpp"

namespace stagecraft {

/// The result of a point. `status` is "ok"; "input", "infeasible", "backend" or "bug" for an error with that exit code
/// in `stagecraft run`; or "crash" or "timeout" of the process that ran it.
struct PointResult {
  std::string hash;      ///< SHA-256 of `scenario`.
  std::string scenario;  ///< Resolved; if that fails, the unresolved text and the settings.
  std::string status = "ok", code, message;
  double seconds = 0;           ///< Wall time.
  std::string machine;          ///< Where measured figures come from.
  std::string plan;             ///< plan_words(); empty without a plan.
  std::vector<double> figures;  ///< Ordered as metrics(); empty if it did not run. NaN: not known.

  bool ran() const { return status == "ok"; }
};

/// Whether the machine may be the cause, not the scenario, so that another attempt may succeed.
bool may_pass_another_time(std::string_view status);

/// The scenario of a point, or its problems.
struct ResolvedPoint {
  std::optional<Scenario> scenario;
  std::string text, hash;
  std::vector<Diagnostic> problems;
  bool ill_formed = false;  ///< The problems are in single fields, not in their combination.
};
ResolvedPoint resolve_point(const Sweep&, const Point&);

/// The hash of each point. InputError with all values that are invalid in every point that has them. A point that is
/// invalid only as a combination is a result like any other.
std::vector<std::string> hashes_of(const Sweep&, const std::vector<Point>&);

/// Runs one point after another on a backend. A point shares with the one before it what both describe alike.
class PointRunner {
 public:
  PointRunner(const Sweep& sweep, std::string backend) : sweep_(&sweep), backend_(std::move(backend)) {}
  /// Errors become part of the result.
  PointResult run(const Point&);

 private:
  void try_to_run(const Scenario&, PointResult&);

  const Sweep* sweep_;
  std::string backend_;
  std::optional<Experiment> previous_;
};

/// A message between processes; result_from_bytes() is the inverse.
std::string to_bytes(const PointResult&);
PointResult result_from_bytes(const std::string&);

}  // namespace stagecraft
