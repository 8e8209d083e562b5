#include "sim/sweep/short_labels.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::ordered_json;

/// The value as YAML on one line.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_primitive()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& item : value.items()) {
    const std::string text = text_of(item.value());
    parts.push_back(value.is_object() ? fmt::format("{}: {}", item.key(), text) : text);
  }
  return value.is_object() ? fmt::format("{{{}}}", join(parts)) : fmt::format("[{}]", join(parts));
}

/// The values of a path by their text. They get short names only if all of them are maps.
struct PathValues {
  std::map<std::string, Json> maps;
  std::map<std::string, std::string> names;
  bool all_maps = true;
};

bool in_all(const std::string& key, const Json& value, const std::map<std::string, Json>& maps) {
  return std::all_of(maps.begin(), maps.end(),
                     [&](const auto& other) { return other.second.contains(key) && other.second.at(key) == value; });
}

void set_names(PathValues& values) {
  if (!values.all_maps) return;
  std::set<std::string> different;
  for (const auto& [text, map] : values.maps) {
    std::vector<std::string> parts;
    for (const auto& item : map.items())
      if (!in_all(item.key(), item.value(), values.maps)) parts.push_back(text_of(item.value()));
    values.names[text] = join(parts, " ");
    different.insert(values.names[text]);
  }
  if (different.size() < values.maps.size() || different.contains("")) values.names.clear();
}

std::map<std::string, PathValues> values_in(const std::vector<Json>& settings) {
  std::map<std::string, PathValues> by_path;
  for (const Json& point : settings)
    for (const auto& item : point.items()) {
      PathValues& values = by_path[item.key()];
      values.all_maps = values.all_maps && item.value().is_object();
      if (values.all_maps) values.maps.emplace(text_of(item.value()), item.value());
    }
  for (auto& entry : by_path) set_names(entry.second);
  return by_path;
}

std::string last_field(const std::string& path) { return path.substr(path.rfind('.') + 1); }

/// Empty if no value has a short name.
std::string label_of(const Json& point, const std::map<std::string, PathValues>& by_path) {
  std::vector<std::string> parts;
  bool shorter = false;
  for (const auto& item : point.items()) {
    const auto alike = std::count_if(by_path.begin(), by_path.end(), [&](const auto& other) {
      return last_field(other.first) == last_field(item.key());
    });
    const auto& names = by_path.at(item.key()).names;
    shorter |= !names.empty();
    const std::string text = text_of(item.value());
    parts.push_back(
        fmt::format("{}={}", alike == 1 ? last_field(item.key()) : item.key(), names.empty() ? text : names.at(text)));
  }
  return shorter ? join(parts, ",") : std::string();
}

}  // namespace

std::vector<std::string> short_labels(const SweepTable& table) {
  std::vector<Json> settings;
  for (const SweepRow& row : table.rows) settings.push_back(Json::parse(row.settings));
  const auto by_path = values_in(settings);
  std::vector<std::string> labels;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    labels.push_back(label_of(settings[r], by_path));
    if (labels.back().empty()) labels.back() = table.rows[r].label;
  }
  return labels;
}

}  // namespace stagecraft
