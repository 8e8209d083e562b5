#include "sim/sweep/short_labels.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/core/json.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// The value as YAML on one line.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.text();
  std::vector<std::string> parts;
  if (value.is_object()) {
    for (const JsonMember& member : value.members())
      parts.push_back(fmt::format("{}: {}", member.key, text_of(member.value)));
    return fmt::format("{{{}}}", join(parts));
  }
  if (!value.is_array()) return value.dump();
  for (const Json& item : value.items()) parts.push_back(text_of(item));
  return fmt::format("[{}]", join(parts));
}

/// The values of a path by their text. They get short names only if all of them are maps.
struct PathValues {
  std::map<std::string, Json> maps;
  std::map<std::string, std::string> names;
  bool all_maps = true;
};

bool in_all(const std::string& key, const Json& value, const std::map<std::string, Json>& maps) {
  return std::all_of(maps.begin(), maps.end(), [&](const auto& other) {
    const Json* its_value = other.second.find(key);
    return its_value && *its_value == value;
  });
}

void set_names(PathValues& values) {
  if (!values.all_maps) return;
  std::set<std::string> different;
  for (const auto& [text, map] : values.maps) {
    std::vector<std::string> parts;
    for (const auto& [key, value] : map.members())
      if (!in_all(key, value, values.maps)) parts.push_back(text_of(value));
    values.names[text] = join(parts, " ");
    different.insert(values.names[text]);
  }
  if (different.size() < values.maps.size() || different.contains("")) values.names.clear();
}

std::map<std::string, PathValues> values_in(const std::vector<Json>& settings) {
  std::map<std::string, PathValues> by_path;
  for (const Json& point : settings)
    for (const auto& [path, value] : point.members()) {
      PathValues& values = by_path[path];
      values.all_maps = values.all_maps && value.is_object();
      if (values.all_maps) values.maps.emplace(text_of(value), value);
    }
  for (auto& entry : by_path) set_names(entry.second);
  return by_path;
}

std::string last_field(const std::string& path) { return path.substr(path.rfind('.') + 1); }

/// Empty if no value has a short name.
std::string label_of(const Json& point, const std::map<std::string, PathValues>& by_path) {
  std::vector<std::string> parts;
  bool shorter = false;
  for (const JsonMember& setting : point.members()) {
    const std::string& path = setting.key;
    const auto alike = std::count_if(by_path.begin(), by_path.end(),
                                     [&](const auto& other) { return last_field(other.first) == last_field(path); });
    const auto& names = by_path.at(path).names;
    shorter |= !names.empty();
    const std::string text = text_of(setting.value);
    parts.push_back(fmt::format("{}={}", alike == 1 ? last_field(path) : path, names.empty() ? text : names.at(text)));
  }
  return shorter ? join(parts, ",") : std::string();
}

}  // namespace

std::vector<std::string> short_labels(const SweepTable& table) {
  std::vector<Json> settings;
  for (const SweepRow& row : table.rows) settings.push_back(Json::parse(row.settings).value());
  const auto by_path = values_in(settings);
  std::vector<std::string> labels;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    labels.push_back(label_of(settings[r], by_path));
    if (labels.back().empty()) labels.back() = table.rows[r].label;
  }
  return labels;
}

}  // namespace stagecraft
