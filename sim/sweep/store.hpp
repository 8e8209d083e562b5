#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/core/file.hpp"
#include "sim/sweep/result.hpp"
#include "sim/sweep/table.hpp"

namespace stagecraft {

/// What computed a result: another backend or version gives another result.
struct Origin {
  std::string backend, version;  ///< `version` names Stagecraft's and the backend library's.
};

class Database;

/// The file of a sweep's results, in SQLite with a write-ahead log. One process writes it; others may read at the same
/// time.
///
/// Tables: `sweep` (one row: the sweep file and the origin of the last run), `point` (the points of that file: number,
/// label, settings as JSON, hash), `scenario` (hash and resolved text: the hash is the text's SHA-256) and `result`
/// (one row for each hash, backend and version). The view `results` has the points with their results of the last
/// origin, by number. Results are never deleted, so a point that returns to the sweep file finds its result.
class Store {
 public:
  static constexpr int kApplication = 0x53435357;  ///< SQLite's application_id: "SCSW".
  static constexpr int kLayout = 6;                ///< user_version.

  /// Opens or creates the file. InputError if it has other content or another layout, or if another process writes it.
  explicit Store(const std::string& file);
  ~Store();

  /// Replaces the sweep and its points; results stay. InputError if the file belongs to another sweep.
  void describe(const Sweep&, const std::vector<Point>&, const std::vector<std::string>& hashes, const Origin&);

  /// Hashes with a result of this origin. With `retry`, failures that may pass next time are left out.
  std::set<std::string> finished(const Origin&, bool retry) const;

  /// Gives each scenario without a result of this origin the newest successful result of another version of the same
  /// backend; its message names the version. Returns how many.
  int take_over(const Origin&);

  /// Writes one result and commits it. It replaces an earlier one.
  void add(const PointResult&, const Origin&);

  /// The points by number with their results of the run that came last.
  SweepTable table() const;

  /// Copies the results of another file of the same sweep and origin; InputError if these differ. If both files have a
  /// result, a successful one wins, and otherwise the one that was here stays.
  void merge(const std::string& file);

 private:
  void merge_attached(const std::string& file);

  OpenFile lock_;  ///< This process alone writes the file; SQLite's own locks last for a transaction only.
  std::unique_ptr<Database> database_;
};

/// False if the file or its folder, to which SQLite writes as well, may not be written.
bool may_be_written(const std::string& file);

/// InputError unless the file has results of a sweep.
void check_results(const std::string& file);

/// The points in a file by number with their results of the run that came last, even while another process writes it.
/// InputError as in check_results().
SweepTable results_in(const std::string& file);

/// The settings of a point as a JSON object from path to value.
std::string settings_json(const Point&);

// The schema of a file of sweep results. Its table `result` has a column for each metric of the version that wrote it,
// and columns are read by name: a metric that the file lacks is not known, and one that this version lacks is passed
// over. So a new metric ends no file.

/// The statements that make the tables and the view with the metrics of this version.
std::string tables_and_view();

/// InputError where a table, an index or a trigger that belongs to the results is not as Stagecraft writes it: it could
/// run without end, or change what is read. Other tables in the file are never read.
void require_schema(const Database&);

/// Adds the metrics that the file lacks to its table and its view. The caller has begun a transaction.
void add_missing_metrics(Database&);

/// What the view `results` of this file has. A view in a file is not trusted, so Stagecraft reads with the query
/// itself.
std::string points_with_results(const Database&);

/// ", makespan_s, goodput, ...": the metrics of this version.
std::string metric_names();
/// ", makespan_s, NULL AS goodput, ...": the same, as this schema of the connection has them.
std::string selected_metrics(const Database&, const std::string& schema = "main");

}  // namespace stagecraft
