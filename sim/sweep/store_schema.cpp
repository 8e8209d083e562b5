// The SQL of a file of sweep results: its tables and view, the check that a file has them as Stagecraft writes them,
// and columns that are added for new metrics.

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/result/metrics.hpp"
#include "sim/sweep/database.hpp"
#include "sim/sweep/store.hpp"
#include "sim/sweep/table.hpp"

namespace stagecraft {
namespace {

using SQLite::Statement;

struct Column {
  std::string name, type;

  std::string definition() const { return name + ' ' + type; }
};
using Columns = std::vector<Column>;

const DatabaseTable& table(std::string_view name) {
  for (const DatabaseTable& t : database_tables())
    if (t.name == name) return t;
  throw InternalError(fmt::format("no table '{}'", name));
}

/// The columns of a table, or the view, without metrics.
Columns fixed_columns(const DatabaseTable& table) {
  using Kind = config::Field::Kind;
  Columns columns;
  for (const FileColumn& c : table.columns) {
    const Kind kind = c.field.kind;
    if (find_metric(c.name())) continue;
    columns.push_back({c.name(), kind == Kind::Integer ? "INTEGER NOT NULL"
                                 : kind == Kind::Real  ? "REAL NOT NULL"
                                                       : "TEXT NOT NULL"});
  }
  return columns;
}

/// Columns of the metrics that this version knows.
Columns metric_columns() {
  Columns columns;
  for (const Metric& m : metrics())
    columns.push_back({m.name, metric_column(m).field.kind == config::Field::Kind::Integer ? "INTEGER" : "REAL"});
  return columns;
}

bool is_name(const std::string& text) {
  constexpr std::string_view kParts = "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  return text.find_first_not_of(kParts) == std::string::npos && text.find_first_not_of("0123456789") == 0;
}

bool has(const Columns& columns, std::string_view name) {
  return std::any_of(columns.begin(), columns.end(), [&](const Column& c) { return c.name == name; });
}

/// Columns of the table `result` of a file that may be metrics, of this or of another version. A column that is left
/// out here makes the schema of the file another one.
Columns metrics_in(const Database& database, const std::string& schema) {
  const Columns fixed = fixed_columns(table("result")), ours = metric_columns();
  Columns columns;
  Statement info(database.sql(), "SELECT name, type FROM pragma_table_info('result', ?)");
  info.bind(1, schema);
  while (info.executeStep()) {
    Column c{info.getColumn(0).getString(), info.getColumn(1).getString()};
    const bool is_known =
        std::any_of(ours.begin(), ours.end(), [&](const Column& o) { return o.definition() == c.definition(); });
    const bool may_be_other = !has(ours, c.name) && is_name(c.name) && (c.type == "REAL" || c.type == "INTEGER");
    if (!has(fixed, c.name) && (is_known || may_be_other)) columns.push_back(std::move(c));
  }
  return columns;
}

std::string definitions(const Columns& columns, const Columns& more = {}) {
  std::vector<std::string> words;
  for (const Columns* some : {&columns, &more})
    for (const Column& c : *some) words.push_back(c.definition());
  return join(words, ", ");
}

/// The points with their results: the fixed columns of the view, with the metrics after the message.
std::string query_of(const Columns& metrics) {
  const Columns of_point = fixed_columns(table("point"));
  std::vector<std::string> words;
  for (const Column& c : fixed_columns(results_view())) {
    words.push_back((has(of_point, c.name) ? "point." : "result.") + c.name);
    if (c.name == "message")
      for (const Column& m : metrics) words.push_back("result." + m.name);
  }
  return fmt::format(R"sql(
  SELECT {}
  FROM point JOIN sweep LEFT JOIN result
    ON result.hash = point.hash AND result.backend = sweep.backend AND result.version = sweep.version
  ORDER BY point.number)sql",
                     join(words, ", "));
}

std::string view_of(const Columns& metrics) { return "CREATE VIEW IF NOT EXISTS results AS" + query_of(metrics) + ";"; }

std::string layout_of(const Columns& metrics) {
  return fmt::format(R"sql(
CREATE TABLE IF NOT EXISTS sweep(one INTEGER PRIMARY KEY CHECK (one = 1), {0}) STRICT;
CREATE TABLE IF NOT EXISTS point({1}, PRIMARY KEY (number)) STRICT;
CREATE TABLE IF NOT EXISTS scenario({2}, PRIMARY KEY (hash)) STRICT;
CREATE TABLE IF NOT EXISTS result({3}, PRIMARY KEY (hash, backend, version)) STRICT, WITHOUT ROWID;
{4}
PRAGMA application_id = {5};
PRAGMA user_version = {6};
)sql",
                     definitions(fixed_columns(table("sweep"))), definitions(fixed_columns(table("point"))),
                     definitions(fixed_columns(table("scenario"))),
                     definitions(fixed_columns(table("result")), metrics), view_of(metrics), Store::kApplication,
                     Store::kLayout);
}

using Schema = std::map<std::string, std::string>;  ///< The SQL of tables, views, indexes and triggers by name.

/// What SQLite keeps about tables and what belongs to them, as it was written. Indexes that it makes itself have no
/// SQL.
Schema schema_of(const SQLite::Database& sql, const Schema& tables) {
  Schema schema;
  Statement query(sql, "SELECT name, tbl_name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL");
  while (query.executeStep())
    if (tables.empty() || tables.contains(query.getColumn(1).getString()))
      schema.emplace(query.getColumn(0).getString(), query.getColumn(2).getString());
  return schema;
}

/// The schema that Stagecraft writes where it has these metrics.
Schema schema_with(const Columns& metrics) {
  SQLite::Database memory(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  memory.exec(layout_of(metrics));
  return schema_of(memory, {});
}

}  // namespace

std::string tables_and_view() { return layout_of(metric_columns()); }

void require_schema(const Database& database) try {
  const Schema ours = schema_with(metrics_in(database, "main")), there = schema_of(database.sql(), ours);
  for (const auto& [name, sql] : ours)
    if (const auto it = there.find(name); it == there.end() || it->second != sql)
      throw InputError(fmt::format("'{}': '{}' is not as stagecraft sweep writes it", database.file(), name),
                       "name another file");
  for (const auto& [name, sql] : there)
    if (!ours.contains(name))
      throw InputError(fmt::format("'{}': '{}' belongs to a table of the results, and stagecraft sweep has not written "
                                   "it",
                                   database.file(), name),
                       fmt::format("remove '{}', or name another file", name));
} catch (const SQLite::Exception& e) {
  database.fail(e);
}

void add_missing_metrics(Database& database) {
  Columns there = metrics_in(database, "main");
  const std::size_t before = there.size();
  for (const Column& c : metric_columns()) {
    if (has(there, c.name)) continue;
    database.sql().exec("ALTER TABLE result ADD COLUMN " + c.definition());
    there.push_back(c);
  }
  if (there.size() > before) database.sql().exec("DROP VIEW results; " + view_of(there));
}

std::string metric_names() {
  std::string text;
  for (const Metric& m : metrics()) text += fmt::format(", {}", m.name);
  return text;
}

std::string points_with_results(const Database& database) { return query_of(metrics_in(database, "main")); }

std::string selected_metrics(const Database& database, const std::string& schema) {
  const Columns there = metrics_in(database, schema);
  std::string text;
  for (const Metric& m : metrics())
    text += has(there, m.name) ? fmt::format(", {}", m.name) : fmt::format(", NULL AS {}", m.name);
  return text;
}

}  // namespace stagecraft
