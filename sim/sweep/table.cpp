// The results of a sweep as a table with short labels, as text, CSV and JSON.

#include "sim/sweep/table.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "sim/core/json.hpp"
#include "sim/core/quantity.hpp"
#include "sim/core/text.hpp"
#include "sim/output/result_columns.hpp"
#include "sim/output/table.hpp"
#include "sim/output/text.hpp"
#include "sim/result/economics.hpp"
#include "sim/result/metrics.hpp"
#include "sim/sweep/comparable_rows.hpp"
#include "sim/sweep/points.hpp"
#include "sim/sweep/result.hpp"
#include "sim/sweep/seed_statistics.hpp"
#include "sim/sweep/value_names.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostNamed = 6;

bool ran(const SweepRow& row) { return row.status == "ok"; }

double value(const SweepRow& row, const char* name) { return row.figures[metric(name)]; }

/// The last field of the path, or the whole path where another one ends like it.
std::string short_name(const std::string& path, const ValueNames& names) {
  const std::vector<std::string> paths = names.paths();
  const auto alike = std::count_if(paths.begin(), paths.end(),
                                   [&](const std::string& other) { return last_field(other) == last_field(path); });
  return alike == 1 ? last_field(path) : path;
}

/// Empty if no value has a short name.
std::string label_of(const Json& point, const ValueNames& names) {
  std::vector<std::string> parts;
  bool shorter = false;
  for (const JsonMember& setting : point.members()) {
    shorter |= names.has_names(setting.key);
    parts.push_back(fmt::format("{}={}", short_name(setting.key, names), names.name(setting.key, setting.value)));
  }
  return shorter ? join(parts, ",") : std::string();
}

/// A row with its settings.
struct PointRow {
  const SweepRow* row;
  Json settings;
};

std::vector<PointRow> point_rows(const SweepTable& table) {
  std::vector<PointRow> rows;
  for (const SweepRow& row : table.rows) rows.push_back({&row, Json::parse(row.settings).value()});
  return rows;
}

/// Every path of the points, in the order in which they come.
std::vector<std::string> paths_in(const std::vector<PointRow>& rows) {
  std::vector<std::string> paths;
  for (const PointRow& r : rows)
    for (const JsonMember& setting : r.settings.members())
      if (std::find(paths.begin(), paths.end(), setting.key) == paths.end()) paths.push_back(setting.key);
  return paths;
}

std::string failure_text(const SweepRow& row) {
  if (ran(row)) return {};
  return row.status.empty() ? "not run" : fmt::format("{}: {}", row.status, row.message);
}

/// A setting may be a map, as compact JSON.
FileColumn setting_column(const std::string& path) {
  return only(word_column(path, "Value of this path; a map or a list as JSON."), "one for each path that varies");
}

/// A column of each path; people see those that vary.
TableColumns<PointRow> setting_columns(const std::vector<PointRow>& rows, const AxisLabels& labels) {
  std::vector<Json> settings;
  for (const PointRow& r : rows) settings.push_back(r.settings);
  const ValueNames names(settings, labels);
  TableColumns<PointRow> columns;
  for (const std::string& path : paths_in(rows)) {
    TableColumn column{
        .key = setting_column(path), .width = 2, .widens = true, .files = InFiles::Csv, .rows = InRows::All};
    const bool varies = std::any_of(settings.begin(), settings.end(), [&](const Json& s) {
      const Json *value = s.find(path), *first = settings.front().find(path);
      return !value || !first || !(*value == *first);
    });
    if (varies) column.heading = short_name(path, names);
    const bool is_number = std::all_of(settings.begin(), settings.end(), [&](const Json& s) {
      const Json* value = s.find(path);
      return !value || value->is_number();
    });
    if (!is_number) column.align = TextAlign::Left;
    columns.push_back({std::move(column), [path, names](const PointRow& r) {
                         const Json* set = r.settings.find(path);
                         if (!set) return TableCell();
                         return TableCell(set->is_string() ? set->text() : set->dump(), names.name(path, *set));
                       }});
  }
  return columns;
}

/// What people see of each point that ran, and from tokens_per_s on only where some point has it. Files have all
/// metrics.
TableColumns<PointRow> text_columns(const std::vector<PointRow>& rows) {
  struct ShownMetric {
    const char* name;
    int width, drop_order;
    bool is_optional = false;
  };
  constexpr ShownMetric kShown[] = {{"makespan_s", 11, 4},
                                    {"period_s", 11, 0},
                                    {"throughput_samples_per_s", 10, 0},
                                    {"bubble", 7, 3},
                                    {"peak_memory_bytes", 10, 1},
                                    {"devices", 7, 2},
                                    {"tokens_per_s", 10, 5, true},
                                    {"mfu", 6, 6, true},
                                    {"dollars_per_billion_tokens", 8, 1, true},
                                    {"training_s", 10, 1, true},
                                    {"training_dollars", 8, 1, true}};
  TableColumns<PointRow> columns;
  for (const ShownMetric& shown : kShown) {
    const Metric* m = find_metric(shown.name);
    const auto has = [&](const PointRow& r) { return ran(*r.row) && std::isfinite(value(*r.row, m->name)); };
    if (shown.is_optional && std::none_of(rows.begin(), rows.end(), has)) continue;
    columns.push_back(figure_column<PointRow>(*m, [m](const PointRow& r) { return value(*r.row, m->name); },
                                              {.width = shown.width, .drop_order = shown.drop_order}));
  }
  return columns;
}

/// The plan of all points that have one, where it is the same.
std::string shared_plan(const SweepTable& table) {
  std::set<std::string> plans;
  for (const SweepRow& row : table.rows)
    if (!row.plan.empty()) plans.insert(row.plan);
  return plans.size() == 1 ? *plans.begin() : std::string();
}

Table printed(const SweepTable& table) {
  using Row = PointRow;
  const std::vector<PointRow> rows = point_rows(table);
  TableColumns<Row> columns{
      {{.key = point_column("number"), .heading = "no", .width = 2, .widens = true, .rows = InRows::All},
       [](const Row& r) { return r.row->number; }},
      {{.key = point_column("label"), .files = InFiles::Json, .rows = InRows::All},
       [](const Row& r) { return r.row->label; }},
      {{.key = point_column("settings"), .files = InFiles::Json, .rows = InRows::All},
       [](const Row& r) { return r.settings; }},
  };
  for (auto& column : setting_columns(rows, axis_labels(table.text))) columns.push_back(std::move(column));
  columns.push_back({{.key = point_column("status"), .rows = InRows::All},
                     [](const Row& r) { return r.row->status.empty() ? Json() : Json(r.row->status); }});
  for (std::size_t i = 0; i < metrics().size(); ++i)
    columns.push_back(figure_column<Row>(metrics()[i], [i](const Row& r) { return r.row->figures[i]; },
                                         {.key = or_null(metric_column(metrics()[i]))}));
  // In CSV a point that ran may have a message too: where its result was taken over from.
  for (const auto& [key, text] : {std::pair("code", &SweepRow::code), std::pair("message", &SweepRow::message)}) {
    const auto cell = [text = text](const Row& r) { return TableCell(r.row->*text); };
    const auto unless_missing = [cell](const Row& r) { return r.row->status.empty() ? TableCell() : cell(r); };
    columns.push_back({{.key = point_column(key), .files = InFiles::Csv, .rows = InRows::All}, cell});
    columns.push_back({{.key = point_column(key), .files = InFiles::Json, .rows = InRows::Failed}, unless_missing});
  }
  for (auto& column : text_columns(rows)) columns.push_back(std::move(column));
  TableColumn plan{.key = point_column("plan"), .width = 4, .align = TextAlign::Left, .widens = true, .drop_order = 7};
  const bool is_varied =
      std::any_of(columns.begin(), columns.end(), [](const auto& c) { return c.column.heading == "plan"; });
  if (shared_plan(table).empty()) plan.heading = is_varied ? "plan in words" : "plan";
  columns.push_back({plan, [](const Row& r) { return r.row->plan; }});
  Table printed_table = make_table<Row>(columns, rows, [](const Row& r) { return failure_text(*r.row); });
  const ComparableRows compared = rows_on_usual_devices(table);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const SweepRow& row = table.rows[r];
    if (!ran(row)) continue;
    std::string& note = printed_table.rows[r].note;
    if (value(row, "fits") <= 0) note = ", which is too much with the messages on their way";
    if (!compared.has(r))
      note += fmt::format(", on {}, not {}", pluralize(static_cast<std::int64_t>(value(row, "devices")), "device"),
                          shortest(*compared.usual_instead[r]));
  }
  return printed_table;
}

std::string numbers_of(const std::vector<const SweepRow*>& rows) {
  std::vector<std::string> words;
  for (const SweepRow* row : rows) words.push_back(std::to_string(row->number));
  const std::size_t left_out = words.size() > kMostNamed ? words.size() - kMostNamed : 0;
  words.resize(words.size() - left_out);
  return fmt::format("point{} {}{}", rows.size() == 1 ? "" : "s", join(words),
                     left_out ? fmt::format(" and {} more", left_out) : "");
}

}  // namespace

int SweepTable::failed() const {
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(), [](const SweepRow& r) { return !r.status.empty() && !ran(r); }));
}

int SweepTable::missing() const {
  return static_cast<int>(std::count_if(rows.begin(), rows.end(), [](const SweepRow& r) { return r.status.empty(); }));
}

Table rows_of(const SweepTable& table) { return printed(table); }

std::string to_text(const SweepTable& table, const TextLayout& layout) {
  const std::string plan = shared_plan(table);
  return wrap_lines(table.title + (plan.empty() ? "\n\n" : "\n" + plan + "\n\n"), layout.width) +
         to_text(printed(table), layout) + seed_statistics_text(table, layout);
}

std::string sweep_csv(const SweepTable& table) { return to_csv(printed(table)); }

std::vector<FileColumn> sweep_columns() {
  SweepTable table;
  table.rows.emplace_back().settings = R"({"<path>": ""})";
  return csv_columns(printed(table));
}

const config::MapSpec& sweep_results_fields() {
  using namespace config;
  static const MapSpec row = json_row(printed({}), "A point. One that failed, or was not run, has no metrics.");
  static const MapSpec spec{
      .title = "What `stagecraft sweep --format json` prints: the points of a sweep with their results.",
      .fields = {choice("schema", {"sweep-results/1"}).doc("Version of this format."),
                 text("title").doc("Title of the sweep."), text("backend").doc("Backend of the results."),
                 list("points", map("point", row)).positional().doc("The points by number."), seed_statistics_field()}};
  return spec;
}

std::string sweep_json(const SweepTable& table) {
  const Json json = JsonObject{{"schema", "sweep-results/1"},
                               {"title", table.title},
                               {"backend", table.backend},
                               {"points", to_json(printed(table))},
                               {"seed_statistics", seed_statistics_json(table)}};
  return json.dump(2);
}

std::string devices_note(const SweepTable& table) {
  const std::string sentence = rows_on_usual_devices(table).sentence("marked");
  return sentence.empty() ? ""
                          : sentence + "; compare rows with equal numbers of devices, or divide the throughput by them";
}

std::string failures_text(const SweepTable& table) {
  std::map<std::pair<std::string, std::string>, std::vector<const SweepRow*>> by_kind;
  for (const SweepRow& row : table.rows)
    if (!row.status.empty() && !ran(row)) by_kind[{row.status, row.code}].push_back(&row);
  std::vector<std::vector<const SweepRow*>> kinds;
  for (auto& [kind, rows] : by_kind) kinds.push_back(std::move(rows));
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::string text;
  for (const auto& rows : kinds) {
    const SweepRow& first = *rows.front();
    text += fmt::format("  {:>5}  {}{}: {}\n         first: {}\n", rows.size(), first.status,
                        first.code.empty() ? "" : fmt::format(" ({})", first.code), numbers_of(rows), first.message);
  }
  return text;
}

std::vector<std::string> short_labels(const SweepTable& table) {
  std::vector<Json> settings;
  for (const SweepRow& row : table.rows) settings.push_back(Json::parse(row.settings).value());
  const ValueNames names(settings, axis_labels(table.text));
  std::vector<std::string> labels;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    labels.push_back(label_of(settings[r], names));
    if (labels.back().empty()) labels.back() = table.rows[r].label;
  }
  return labels;
}

}  // namespace stagecraft
