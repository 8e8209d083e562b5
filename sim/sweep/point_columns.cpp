// The columns of points, in files and in the tables of the database.

#include "sim/sweep/table.hpp"

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/json.hpp"

namespace stagecraft {
namespace {

/// Columns by name, then the columns of all metrics.
std::vector<FileColumn> columns_of(std::initializer_list<const char*> names, bool with_metrics = false) {
  std::vector<FileColumn> columns;
  for (const char* name : names) columns.push_back(point_column(name));
  if (with_metrics)
    for (const Metric& m : metrics()) columns.push_back(or_null(metric_column(m)));
  return columns;
}

}  // namespace

FileColumn point_column(std::string_view name) {
  using namespace config;
  static const std::vector<FileColumn> columns{
      whole_column("number", "Number of the point in the sweep, from 1."),
      word_column("label", "The point's settings in one line."),
      nested_column(table("settings", any("value")), "Path and value of each setting of the point; in SQLite as JSON."),
      or_null(word_column("status",
                          "ok, or input, infeasible, backend or bug as the exit codes of stagecraft run, or crash or "
                          "timeout; empty or null: not run.")),
      word_column("code", "Kind of error; empty without an error."),
      word_column("message", "The error, or the version from which a result was taken over."),
      word_column("hash", "SHA-256 of the resolved scenario."),
      word_column("backend", "Backend of the result, or of the last run of the sweep."),
      word_column("version", "Versions of Stagecraft and of the backend library."),
      number_column("wall_s", "s", "Wall-clock time of the simulation or of the real run."),
      word_column("finished", "Time at which it ended, in UTC."),
      word_column("machine", "The machine, where times are measured; otherwise empty."),
      word_column("plan", "The plan as training frameworks count it; empty without one."),
      word_column("name", "Name of the sweep."),
      word_column("title", "Title of the sweep."),
      word_column("text", "Text of the file: the sweep, or the resolved scenario."),
  };
  for (const FileColumn& c : columns)
    if (c.name() == name) return c;
  throw InternalError(fmt::format("no column '{}'", name));
}

const std::vector<DatabaseTable>& database_tables() {
  static const std::vector<DatabaseTable> tables{
      {"sweep", "One row: the sweep as it ran last.", columns_of({"name", "title", "text", "backend", "version"})},
      {"point", "The points of the sweep.", columns_of({"number", "label", "settings", "hash"})},
      {"scenario", "Resolved scenarios by hash.", columns_of({"hash", "text"})},
      {"result", "Results by hash, backend and version.",
       columns_of({"hash", "backend", "version", "status", "code", "message", "wall_s", "finished", "machine", "plan"},
                  true)}};
  return tables;
}

const DatabaseTable& results_view() {
  static const DatabaseTable view = [] {
    DatabaseTable table{"results", "A view: the points with their results of the last run's backend and version.",
                        columns_of({"number", "label", "settings", "status", "code", "message"}, true)};
    for (FileColumn& c : columns_of({"wall_s", "finished", "backend", "version", "machine", "plan", "hash"}))
      table.columns.push_back(std::move(c));
    return table;
  }();
  return view;
}

std::string database_schema() {
  JsonArray tables;
  const auto add = [&](const DatabaseTable& t) {
    tables.push_back(
        JsonObject{{"name", t.name}, {"schema", Json::parse(table_schema(t.name, t.description, t.columns)).value()}});
  };
  for (const DatabaseTable& t : database_tables()) add(t);
  add(results_view());
  return Json(JsonObject{{"title", "stagecraft sweep.db"},
                         {"description", "SQLite file of a sweep's results. Its tables and the view `results`."},
                         {"resources", std::move(tables)}})
             .dump(2) +
         '\n';
}

}  // namespace stagecraft
