#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config/columns.hpp"
#include "sim/output/table.hpp"
#include "sim/result/metrics.hpp"

// The results of a sweep as rows and as a table.

namespace stagecraft {

/// One point of a sweep with its result. `status` is empty if it has not run.
struct SweepRow {
  int number = 0;
  std::string label;
  std::string settings;  ///< JSON: a map from path to value.
  std::string status, code, message;
  std::string hash;             ///< Hash of the scenario.
  std::string plan = {};        ///< plan_words(); empty without a plan.
  std::vector<double> figures;  ///< Ordered as metrics(); NaN: not known.
};

/// The points of a sweep, in its order.
struct SweepTable {
  std::string title, backend;
  std::string name, version, text;  ///< `version` ran it last; `text` is the sweep file.
  std::vector<SweepRow> rows;

  int failed() const;
  int missing() const;
};

std::string to_text(const SweepTable&, const TextLayout& = {});
/// The table alone.
Table rows_of(const SweepTable&);
std::string sweep_csv(const SweepTable&);
std::string sweep_json(const SweepTable&);  ///< Schema sweep-results/1; SI units.
/// One self-contained page: every point in a table and in plots. `base` is the scenario that the points vary; without
/// one the page has what the sweep file writes. Next to `file`, where the page will be written, is the folder of runs.
std::string sweep_html(const SweepTable&, const std::optional<std::string>& base, const std::string& file);

/// What sweep_csv() and sweep_json() write. The column `<path>` stands for one column for each path that varies.
std::vector<FileColumn> sweep_columns();
const config::MapSpec& sweep_results_fields();

/// A line that says so where points with different schedules ran on different numbers of devices; otherwise empty.
std::string devices_note(const SweepTable&);

/// What went wrong, how often, in which points, and the message of the first; most frequent first.
std::string failures_text(const SweepTable&);

/// Short labels of a table's points: if all values of a path are maps, only the entries that differ, without their
/// keys. The page of a sweep has the same labels.
std::vector<std::string> short_labels(const SweepTable&);

/// A column of sweep results, in files and in the database, by name.
FileColumn point_column(std::string_view name);

/// A table, or the view, of the database that a sweep writes.
struct DatabaseTable {
  std::string name, description;
  std::vector<FileColumn> columns;
};

/// The tables sweep, point, scenario and result, in this order. Store creates them from this list.
const std::vector<DatabaseTable>& database_tables();
/// The view `results`.
const DatabaseTable& results_view();

/// The tables and the view as JSON, each with a JSON Table Schema.
std::string database_schema();

}  // namespace stagecraft
