#include "sim/sweep/table.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/core/quantity.hpp"
#include "sim/core/text.hpp"
#include "sim/sweep/result.hpp"
#include "sim/sweep/short_labels.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostNamed = 6;

bool ran(const SweepRow& row) { return row.status == "ok"; }

double value(const SweepRow& row, const char* name) { return row.figures[metric(name)]; }

std::string percent(double share) { return fmt::format("{:.1f} %", std::abs(share) < 5e-4 ? 0.0 : 100 * share); }

/// Every path of the points, in the order in which they come.
std::vector<std::string> paths_in(const std::vector<Json>& settings) {
  std::vector<std::string> paths;
  for (const Json& point : settings)
    for (const auto& item : point.items())
      if (std::find(paths.begin(), paths.end(), item.key()) == paths.end()) paths.push_back(item.key());
  return paths;
}

std::vector<Json> settings_of(const SweepTable& table) {
  std::vector<Json> settings;
  for (const SweepRow& row : table.rows) settings.push_back(Json::parse(row.settings));
  return settings;
}

std::string cell(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return text.find_first_of(",\"\n") == std::string::npos ? text : csv_quoted(text);
}

std::string figure_text(const SweepRow& row, std::size_t i) {
  const double number = row.figures[i];
  return !ran(row) || std::isnan(number) ? "" : shortest(number);
}

Json figure_json(const SweepRow& row, std::size_t i) {
  if (std::isnan(row.figures[i])) return {};
  return metrics()[i].whole ? Json(static_cast<std::int64_t>(row.figures[i])) : Json(row.figures[i]);
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

std::string to_text(const SweepTable& table) {
  const std::vector<std::string> labels = short_labels(table);
  std::size_t width = 5, digits = 2;
  for (const std::string& label : labels) width = std::max(width, label.size());
  for (const SweepRow& row : table.rows) digits = std::max(digits, std::to_string(row.number).size());
  std::string text =
      fmt::format("{}\n\n  {:>{}}  {:<{}}  {:>11}  {:>11}  {:>10}  {:>7}  {:>10}  {:>7}\n", table.title, "no", digits,
                  "point", width, "iteration", "period", "throughput", "bubble", "memory", "devices");
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const SweepRow& row = table.rows[r];
    text += fmt::format("  {:>{}}  {:<{}}", row.number, digits, labels[r], width);
    if (ran(row))
      text += fmt::format("  {:>11}  {:>11}  {:>8}/s  {:>7}  {:>10}  {:>7}{}\n",
                          to_text(Seconds{value(row, "makespan_s")}), to_text(Seconds{value(row, "period_s")}),
                          fmt::format("{:.4g}", value(row, "throughput_samples_per_s")), percent(value(row, "bubble")),
                          to_text(Bytes{value(row, "peak_memory_bytes")}), shortest(value(row, "devices")),
                          value(row, "fits") > 0 ? "" : ", which is too much with the messages on their way");
    else
      text += row.status.empty() ? "  not run\n" : fmt::format("  {}: {}\n", row.status, row.message);
  }
  return text;
}

std::string sweep_csv(const SweepTable& table) {
  const std::vector<Json> settings = settings_of(table);
  const std::vector<std::string> paths = paths_in(settings);
  std::string text = "number";
  for (const std::string& path : paths) text += ',' + cell(path);
  text += ",status";
  for (const Metric& f : metrics()) text += fmt::format(",{}", f.name);
  text += ",code,message\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const SweepRow& row = table.rows[r];
    text += std::to_string(row.number);
    for (const std::string& path : paths) text += ',' + (settings[r].contains(path) ? cell(settings[r][path]) : "");
    text += ',' + row.status;
    for (std::size_t i = 0; i < metrics().size(); ++i) text += ',' + figure_text(row, i);
    text += fmt::format(",{},{}\n", row.code, cell(row.message));
  }
  return text;
}

std::string sweep_json(const SweepTable& table) {
  Json json{
      {"schema", "sweep-results/1"}, {"title", table.title}, {"backend", table.backend}, {"points", Json::array()}};
  for (const SweepRow& row : table.rows) {
    Json point{{"number", row.number}, {"label", row.label}, {"settings", Json::parse(row.settings)}};
    point["status"] = row.status.empty() ? Json() : Json(row.status);
    if (ran(row))
      for (std::size_t i = 0; i < metrics().size(); ++i) point[metrics()[i].name] = figure_json(row, i);
    else if (!row.status.empty())
      point["code"] = row.code, point["message"] = row.message;
    json["points"].push_back(std::move(point));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
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

}  // namespace stagecraft
