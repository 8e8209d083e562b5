// The page of a sweep: the settings and results of its points as JSON, each different value once.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "sim/config/value.hpp"
#include "sim/core/json.hpp"
#include "sim/output/html_page.hpp"
#include "sim/result/metrics.hpp"
#include "sim/sweep/comparable_rows.hpp"
#include "sim/sweep/table.hpp"
#include "sim/sweep/value_names.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kKeyLength = 12;  // Hash characters: two of a million points collide once in a billion sweeps.

/// Each different value once, in the order in which they come, and the number of one for each point: -1 where there is
/// none. A page of many points that vary little stays small.
struct DistinctValues {
  JsonArray values;
  std::vector<int> value_of;
  std::map<std::string, int> index;

  explicit DistinctValues(std::size_t points) : value_of(points, -1) {}

  void put(std::size_t point, const Json& value) {
    const auto [at, fresh] = index.try_emplace(value.dump(), static_cast<int>(values.size()));
    if (fresh) values.push_back(value);
    value_of[point] = at->second;
  }
};

Json axes_json(const SweepTable& table) {
  std::vector<std::pair<std::string, DistinctValues>> axes;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const Json settings = Json::parse(table.rows[i].settings).value();
    for (const JsonMember& setting : settings.members()) {
      auto axis = std::find_if(axes.begin(), axes.end(), [&](const auto& a) { return a.first == setting.key; });
      if (axis == axes.end()) axis = axes.insert(axis, {setting.key, DistinctValues(table.rows.size())});
      axis->second.put(i, setting.value);
    }
  }
  const AxisLabels all_labels = axis_labels(table.text, LabelKey::Json);
  const std::vector<VariedPath> paths = varied_paths(table);
  JsonArray json;
  for (const auto& axis : axes) {
    json.push_back(JsonObject{{"path", axis.first}, {"values", axis.second.values}, {"of", axis.second.value_of}});
    if (const auto labels = all_labels.find(axis.first); labels != all_labels.end())
      for (const Json& value : axis.second.values) {
        const auto label = labels->second.find(value.dump());
        json.back()["labels"].push_back(label == labels->second.end() ? Json() : Json(label->second));
      }
    if (std::any_of(paths.begin(), paths.end(),
                    [&](const VariedPath& p) { return p.sets_devices && p.path == axis.first; }))
      json.back()["sets_devices"] = true;
  }
  return json;
}

Json ends_json(const SweepTable& table) {
  DistinctValues ends(table.rows.size());
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const SweepRow& row = table.rows[i];
    if (!row.status.empty())
      ends.put(i, JsonObject{{"status", row.status}, {"code", row.code}, {"message", row.message}});
  }
  return JsonObject{{"values", ends.values}, {"of", ends.value_of}};
}

Json figures_json(const SweepTable& table) {
  JsonArray json;
  for (std::size_t f = 0; f < metrics().size(); ++f) {
    JsonArray values;
    for (const SweepRow& row : table.rows) {
      const bool has_value = row.status == "ok" && f < row.figures.size() && std::isfinite(row.figures[f]);
      values.push_back(has_value ? Json(row.figures[f]) : Json());
    }
    json.push_back(page_json(metrics()[f]));
    json.back()["values"] = std::move(values);
  }
  return json;
}

/// What `base:` of a sweep's text says.
std::string base_in(const SweepTable& table) {
  config::Problems problems;
  const config::Value root = config::parse_yaml(table.text, table.name + ".yaml", problems);
  const config::Value* base = problems.empty() ? root.find("base") : nullptr;
  return base ? base->text : "SCENARIO";
}

}  // namespace

std::string sweep_html(const SweepTable& table, const std::optional<std::string>& base, const std::string& file) {
  namespace fs = std::filesystem;
  const std::string folder = table.name + "-" + table.backend;
  const fs::path out = fs::path(file).parent_path() / folder;
  Json json =
      JsonObject{{"schema", "sweep-page/1"},  {"title", table.title},     {"name", table.name},
                 {"backend", table.backend},  {"version", table.version}, {"base", base ? *base : base_in(table)},
                 {"found", base.has_value()}, {"folder", folder},         {"out", out.string()},
                 {"number", JsonArray()},     {"key", JsonArray()},       {"kept", JsonArray()}};
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::string key = table.rows[i].hash.substr(0, kKeyLength);
    std::error_code error;
    json["number"].push_back(table.rows[i].number);
    json["key"].push_back(key);
    if (fs::is_regular_file(out / key / "report.html", error)) json["kept"].push_back(i);
  }
  json["axes"] = axes_json(table);
  json["ends"] = ends_json(table);
  json["figures"] = figures_json(table);
  return html_page(html::sweep, table.title, json.dump());
}

}  // namespace stagecraft
