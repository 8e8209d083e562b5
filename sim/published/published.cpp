// Reads the files of published results: tables of figures, each with the settings of a scenario that reproduce it.

#include "sim/published/published.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/config/library.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/references.hpp"
#include "sim/published/named_figures.hpp"

namespace stagecraft {
namespace {

using config::Problems;
using config::Value;

const config::MapSpec& setting_fields() {
  using namespace config;
  static const MapSpec spec{.title = "A scenario, and what is changed in it.",
                            .fields = {
                                text("scenario").optional().doc("File next to this one."),
                                table("set", any("value")).optional().doc("Paths of the scenario, as --set has them."),
                            }};
  return spec;
}

std::vector<config::Field> with_setting(std::vector<config::Field> fields) {
  fields.insert(fields.end(), setting_fields().fields.begin(), setting_fields().fields.end());
  return fields;
}

const config::MapSpec& column_fields() {
  using namespace config;
  static const MapSpec spec{.title = "A column of a table.",
                            .fields = with_setting({text("name").doc("As it is printed.")})};
  return spec;
}

const config::MapSpec& row_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "A row of a table.",
      .fields = with_setting({
          text("name").doc("As it is printed."),
          list("values", any("value")).doc("What is published for each column; ~ where nothing is."),
          text("why").fallback("\"\"").doc("Why our figures are others, where they are."),
          table("only", map("setting", setting_fields()))
              .optional()
              .doc("What is changed for one column of this row alone, by its name."),
          map("over", setting_fields()).optional().doc("What is changed in what the cells are ratios to."),
          real("scale", -1e30, 1e30).fallback("1").doc("Ours times this, on top of the table's."),
          table("missed", real("per cent", -1e30, 1e30))
              .optional()
              .doc("The columns that are missed, and by how many per cent of the published figure, to 0.1."),
          boolean("calibrated").fallback("false").doc("A parameter was set so that this row agrees: it is not judged."),
      })};
  return spec;
}

const config::MapSpec& table_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "Published figures of one kind.",
      .fields = with_setting({
          text("name").doc("Table or figure of the source, and what it shows."),
          choice("figure", figure_names).doc("Which of our figures is compared."),
          choice("backend", [] { return names_of(backends::catalog()); }).fallback("ideal").doc("Where it runs."),
          integer("decimals", 0, 15).optional().doc("Ours are to agree when both are rounded to this many decimals."),
          real("tolerance", 0, 10)
              .optional()
              .doc("Largest relative difference: 0.05 for 5 %. With no such rule, here and below, the figures are "
                   "shown and not judged."),
          real("side", -1e30, 1e30).optional().doc("Ours are to be above or below this where the published ones are."),
          choice("bound", {"least", "most"}).optional().doc("Ours are to be at least, or at most, the published ones."),
          boolean("order").fallback("false").doc("Ours of a row are to rise and fall as the published ones do."),
          text("why").fallback("\"\"").doc("Why our figures are others, in rows that do not say why."),
          list("best_of", map("setting", setting_fields())).optional().doc("Each cell is the best of these settings."),
          map("over", setting_fields()).optional().doc("Cells are ratios: to this setting of the same row."),
          list("all_of", map("setting", setting_fields()))
              .optional()
              .doc("Each cell is made of all of these settings."),
          choice("take", {"mean", "largest", "least"}).fallback("mean").doc("What is made of them."),
          real("scale", -1e30, 1e30).fallback("1").doc("Ours times this: for another unit."),
          real("offset", -1e30, 1e30).fallback("0").doc("This is added then: scale: 100, offset: -100 for gains in %."),
          list("columns", map("column", column_fields())).doc("What is changed from cell to cell of a row."),
          list("rows", map("row", row_fields())).doc("Settings with their published figures."),
      })};
  return spec;
}

Setting read_setting(const Value& from, Problems& problems) {
  Setting setting;
  if (const Value* scenario = from.find("scenario")) {
    setting.scenario = find_file(FileKind::Scenario, scenario->text, scenario->where.file);
    if (setting.scenario.empty())
      problems.add(scenario->where, "scenario", fmt::format("there is no file '{}' next to this one", scenario->text),
                   "write a path from this file, with .yaml", "reference");
  }
  if (const Value* set = from.find("set")) setting.set = set->members;
  return setting;
}

std::optional<double> read_value(const Value& value, Problems& problems) {
  if (value.kind == Value::Kind::Null) return {};
  char* end = nullptr;
  const double number = std::strtod(value.text.c_str(), &end);
  if (value.is_scalar() && !value.text.empty() && *end == '\0' && std::isfinite(number)) return number;
  problems.add(value.where, "values", "this is not a number", "write a number, or ~ where nothing is published",
               "wrong-type");
  return {};
}

/// What `read` makes of the entries of a map from columns, for each column.
template <class T, class Read>
std::vector<T> read_by_column(const Value& row, const std::string& field,
                              const std::vector<PublishedTable::Column>& columns, Problems& problems, Read read) {
  std::vector<T> values(columns.size());
  const Value* map = row.find(field);
  if (!map) return values;
  std::vector<std::string> names;
  for (const auto& column : columns) names.push_back(column.name);
  for (const config::Member& m : map->members) {
    const auto column = std::find(names.begin(), names.end(), m.key);
    if (column == names.end())
      problems.add(m.value.where, field, fmt::format("there is no column '{}'", m.key), suggest(m.key, names),
                   "reference");
    else
      values[column - names.begin()] = read(m.value);
  }
  return values;
}

PublishedTable::Row read_row(const Value& from, const std::vector<PublishedTable::Column>& columns,
                             Problems& problems) {
  PublishedTable::Row row;
  row.name = from.at("name").text;
  row.setting = read_setting(from, problems);
  row.why = from.at("why").text;
  if (const Value* over = from.find("over")) row.over = read_setting(*over, problems);
  row.only = read_by_column<Setting>(from, "only", columns, problems,
                                     [&](const Value& value) { return read_setting(value, problems); });
  row.missed = read_by_column<std::optional<double>>(from, "missed", columns, problems, config::as_real);
  row.scale = config::as_real(from.at("scale"));
  row.calibrated = config::as_bool(from.at("calibrated"));
  for (const Value& value : from.at("values").items) row.values.push_back(read_value(value, problems));
  if (row.values.size() != columns.size())
    problems.add(
        from.at("values").where, "values",
        fmt::format("{} for {}", pluralize(std::ssize(row.values), "value"), pluralize(std::ssize(columns), "column")),
        "write one for each column", "wrong-count");
  for (std::size_t i = 0; i < std::min(row.values.size(), columns.size()); ++i)
    if (row.missed[i] && !row.values[i])
      problems.add(from.at("missed").where, "missed", fmt::format("nothing is published for '{}'", columns[i].name),
                   "leave it out", "unused");
  return row;
}

MatchRule read_match_rule(const Value& table) {
  MatchRule c;
  if (const Value* decimals = table.find("decimals")) c.decimals = config::as_int(*decimals);
  if (const Value* tolerance = table.find("tolerance")) c.tolerance = config::as_real(*tolerance);
  if (const Value* side = table.find("side")) c.side = config::as_real(*side);
  if (const Value* bound = table.find("bound"))
    c.bound = bound->text == "least" ? MatchRule::Bound::AtLeast : MatchRule::Bound::AtMost;
  c.order = config::as_bool(table.at("order"));
  return c;
}

std::vector<Setting> read_settings(const Value* list, Problems& problems) {
  std::vector<Setting> settings;
  if (list)
    for (const Value& one : list->items) settings.push_back(read_setting(one, problems));
  return settings;
}

/// Requires a reason for every row that is missed, and a miss in every row that has a reason.
void check_reasons(const PublishedTable& t, const Value& from, Problems& problems) {
  bool of_table = false;
  for (std::size_t r = 0; r < t.rows.size(); ++r) {
    const PublishedTable::Row& row = t.rows[r];
    const Where& where = from.at("rows").items[r].where;
    const bool missed = std::any_of(row.missed.begin(), row.missed.end(), [](const auto& m) { return m.has_value(); });
    of_table = of_table || (missed && row.why.empty());
    if (missed && t.why_of(r).empty())
      problems.add(where, "missed", "figures are missed, and neither the row nor the table says why",
                   "write why:", "missing-field");
    if (!missed && !row.why.empty())
      problems.add(where, "why", "no figure of this row is missed", "write missed: with the columns, or leave it out",
                   "unused");
  }
  if (!of_table && !t.why.empty())
    problems.add(from.at("why").where, "why", "no row is missed that says nothing itself",
                 "write missed: in such a row, or leave it out", "unused");
}

PublishedTable read_table(const Value& from, Problems& problems) {
  PublishedTable t;
  t.name = from.at("name").text;
  t.figure = from.at("figure").text;
  t.backend = from.at("backend").text;
  t.setting = read_setting(from, problems);
  t.why = from.at("why").text;
  t.match_rule = read_match_rule(from);
  t.best_of = read_settings(from.find("best_of"), problems);
  t.all_of = read_settings(from.find("all_of"), problems);
  const std::string take = from.at("take").text;
  t.take = take == "largest" ? Aggregate::Largest : take == "least" ? Aggregate::Smallest : Aggregate::Mean;
  t.scale = config::as_real(from.at("scale"));
  t.offset = config::as_real(from.at("offset"));
  if (const Value* over = from.find("over")) t.over = read_setting(*over, problems);
  for (const Value& column : from.at("columns").items)
    t.columns.push_back({column.at("name").text, read_setting(column, problems)});
  for (const Value& row : from.at("rows").items) t.rows.push_back(read_row(row, t.columns, problems));
  for (std::size_t r = 0; r < t.rows.size(); ++r)
    if (t.setting.scenario.empty() && t.rows[r].setting.scenario.empty())
      problems.add(from.at("rows").items[r].where, "scenario", "neither the row nor the table names a scenario",
                   "write scenario: with a file", "missing-field");
  check_reasons(t, from, problems);
  return t;
}

}  // namespace

bool MatchRule::holds(double published, double ours) const {
  if (!std::isfinite(ours)) return false;
  if (decimals) {
    const double scale = std::pow(10.0, *decimals);
    if (std::round(published * scale) != std::round(ours * scale)) return false;
  }
  if (tolerance && std::abs(ours - published) > *tolerance * std::abs(published)) return false;
  if (side && (published > *side) != (ours > *side)) return false;
  return bound == Bound::None || (bound == Bound::AtLeast ? ours >= published : ours <= published);
}

const config::MapSpec& published_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "What a publication says, and scenarios that say it again.",
      .fields = {
          choice("schema", {"published/1"}).doc("Kind and version of the file."),
          text("title").doc("Title for people."),
          text("source").doc("Authors, title, where and when."),
          list("assumed", text("sentence")).optional().doc("What had to be assumed, a sentence each."),
          list("tables", map("table", table_fields())).doc("Its figures."),
      }};
  return spec;
}

Published load_published(const std::string& given) {
  Published p;
  p.file = published_file(given);
  p.name = std::filesystem::absolute(p.file).parent_path().filename().string();
  Problems problems;
  Value root = config::parse_yaml_file(p.file, problems);
  problems.throw_if_any();
  check_schema_line(root, "published", problems);
  problems.throw_if_any();
  root = config::check(root, published_fields(), "", problems);
  problems.throw_if_any();
  p.title = root.at("title").text;
  p.source = root.at("source").text;
  if (const Value* assumed = root.find("assumed"))
    for (const Value& sentence : assumed->items) p.assumed.push_back(sentence.text);
  for (const Value& table : root.at("tables").items) p.tables.push_back(read_table(table, problems));
  problems.throw_if_any();
  return p;
}

}  // namespace stagecraft
