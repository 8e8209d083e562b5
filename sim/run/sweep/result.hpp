#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/run/run.hpp"
#include "sim/run/sweep/points.hpp"

namespace stagecraft {

/// One number of a report, in the file of results and in tables. `whole`: a count, or 0 and 1 for no and yes.
struct Figure {
  const char* name;
  bool whole;
  double (*of)(const Prepared&, const Outcome&);
};
std::span<const Figure> figures();
std::size_t figure(std::string_view name);  ///< Its place in figures().

/// How a point ended: "ok", or why it has no figures: "input", "infeasible", "backend", "bug" as the exit codes of
/// `stagecraft run` have it, "crash" and "timeout" of the process that ran it.
struct PointResult {
  std::string hash;      ///< SHA-256 of `scenario`.
  std::string scenario;  ///< Resolved; of one that cannot be, the unresolved text and its settings.
  std::string status = "ok", code, message;
  double seconds = 0;           ///< Of wall time.
  std::string machine;          ///< `machine`: of measured figures.
  std::vector<double> figures;  ///< In the order of figures(); none when it did not run. NaN: not known.

  bool ran() const { return status == "ok"; }
};

/// Whether the machine and not the scenario may be to blame, so that another try could end otherwise.
bool may_pass_another_time(std::string_view status);

/// What a point is: its scenario, or what is wrong with it.
struct ResolvedPoint {
  std::optional<Scenario> scenario;
  std::string text, hash;
  std::vector<Diagnostic> problems;
  bool ill_formed = false;  ///< They are of single fields, not of what goes together.
};
ResolvedPoint resolve_point(const Sweep&, const Point&);

/// The hash of each point. A value that is wrong in every point that has it is wrong in the file: InputError with all
/// of these. A point that is only wrong as a combination is a result like any other.
std::vector<std::string> hashes_of(const Sweep&, const std::vector<Point>&);

/// Runs one point, whatever comes of it.
PointResult run_point(const Sweep&, const Point&, const std::string& backend);

/// A result as bytes, between processes.
std::string to_bytes(const PointResult&);
PointResult result_from_bytes(const std::string&);

}  // namespace stagecraft
