// What people call the values of a sweep: labels of the sweep file, and of maps the fields in which they differ.

#include "sim/sweep/value_names.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

bool is_in_all(const JsonMember& member, const std::map<std::string, Json>& maps) {
  return std::all_of(maps.begin(), maps.end(), [&](const auto& other) {
    const Json* its_value = other.second.find(member.key);
    return its_value && *its_value == member.value;
  });
}

/// The fields in which maps differ; empty where a value is no map.
std::map<std::string, std::string> different_fields(const std::map<std::string, Json>& values) {
  std::map<std::string, std::string> names;
  for (const auto& [text, value] : values) {
    if (!value.is_object()) return {};
    std::vector<std::string> parts;
    for (const JsonMember& member : value.members())
      if (!is_in_all(member, values)) parts.push_back(one_line(member.value));
    names[text] = join(parts, " ");
  }
  return names;
}

/// What {csv: FILE}, an order of the user, is called without a label.
std::optional<std::string> order_name(const config::Value& value) {
  const config::Value* file = value.is_map() && value.members.size() == 1 ? value.find("csv") : nullptr;
  if (!file || !file->is_scalar()) return {};
  return std::filesystem::path(file->text).stem().string();
}

}  // namespace

std::optional<std::string> take_label(config::Value& value) {
  const config::Value *label = value.find("label"), *labeled = value.find("value");
  if (!label || !labeled || value.members.size() != 2 || !label->is_scalar()) return {};
  std::string text = label->text;
  config::Value inner = *labeled;
  value = std::move(inner);
  return text;
}

AxisLabels axis_labels(const std::string& sweep_text, LabelKey key) {
  AxisLabels labels;
  config::Problems problems;
  const config::Value root = config::parse_yaml(sweep_text, "", problems);
  const config::Value* axes = problems.empty() && root.is_map() ? root.find("axes") : nullptr;
  if (!axes || !axes->is_map()) return labels;
  for (const config::Member& axis : axes->members)
    for (config::Value value : axis.value.items)
      if (std::optional<std::string> label = take_label(value); label || (label = order_name(value)))
        if (const std::optional<Json> json = Json::parse(config::to_json(value)))
          labels[axis.key][key == LabelKey::Text ? one_line(*json) : json->dump()] = *label;
  return labels;
}

std::string one_line(const Json& value) {
  if (value.is_string()) return value.text();
  std::vector<std::string> parts;
  if (value.is_object()) {
    for (const JsonMember& member : value.members())
      parts.push_back(fmt::format("{}: {}", member.key, one_line(member.value)));
    return fmt::format("{{{}}}", join(parts));
  }
  if (!value.is_array()) return value.dump();
  for (const Json& item : value.items()) parts.push_back(one_line(item));
  return fmt::format("[{}]", join(parts));
}

ValueNames::ValueNames(const std::vector<Json>& settings, const AxisLabels& labels) {
  for (const Json& point : settings)
    for (const JsonMember& setting : point.members())
      values_[setting.key].emplace(one_line(setting.value), setting.value);
  for (const auto& [path, values] : values_) {
    std::map<std::string, std::string> names = different_fields(values);
    if (const auto of_path = labels.find(path); of_path != labels.end())
      for (const auto& [text, value] : values) {
        const auto label = of_path->second.find(text);
        if (label != of_path->second.end()) names[text] = label->second;
        names.try_emplace(text, text);
      }
    std::set<std::string> different;
    for (const auto& name : names) different.insert(name.second);
    if (!names.empty() && different.size() == values.size() && !different.contains("")) names_[path] = std::move(names);
  }
}

std::string ValueNames::name(const std::string& path, const Json& value) const {
  const std::string text = one_line(value);
  const auto names = names_.find(path);
  return names == names_.end() ? text : names->second.at(text);
}

std::vector<std::string> ValueNames::paths() const {
  std::vector<std::string> paths;
  for (const auto& path : values_) paths.push_back(path.first);
  return paths;
}

}  // namespace stagecraft
