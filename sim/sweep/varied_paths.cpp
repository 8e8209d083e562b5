// Finds the paths in which the points of a sweep differ, and which of them decide about the devices.

#include "sim/sweep/comparable_rows.hpp"

#include <algorithm>
#include <map>

#include "sim/core/json.hpp"
#include "sim/sweep/points.hpp"
#include "sim/sweep/value_names.hpp"

namespace stagecraft {
namespace {

std::string value_text(const Json& value) { return value.is_string() ? value.text() : value.dump(); }

/// Points without a value say what the base has.
bool varies(const VariedPath& p) {
  return p.values.size() > 1 || std::find(p.value_of.begin(), p.value_of.end(), -1) != p.value_of.end();
}

/// Whether points with equal values of one path have equal values of the other.
bool determines(const VariedPath& path, const VariedPath& other) {
  std::map<int, int> value_for;
  for (std::size_t r = 0; r < path.value_of.size(); ++r)
    if (value_for.emplace(path.value_of[r], other.value_of[r]).first->second != other.value_of[r]) return false;
  return true;
}

bool is_about_devices(const std::string& path) {
  const auto parts = {"cluster", "plan.stages", "plan.replicas", "plan.devices", "plan.group", "plan.layout"};
  return path == "plan" ||
         std::any_of(parts.begin(), parts.end(), [&](const char* part) { return is_within(path, part); });
}

/// Labels and short names in place of the values.
void name_values(std::vector<VariedPath>& paths, const SweepTable& table) {
  std::vector<Json> settings;
  for (const SweepRow& row : table.rows) settings.push_back(Json::parse(row.settings).value());
  const ValueNames names(settings, axis_labels(table.text));
  for (VariedPath& p : paths) {
    if (!names.has_names(p.path)) continue;
    for (std::size_t r = 0; r < p.value_of.size(); ++r)
      if (p.value_of[r] >= 0) p.values[p.value_of[r]] = names.name(p.path, settings[r].at(p.path));
    p.is_number = false;
  }
}

}  // namespace

std::vector<VariedPath> varied_paths(const SweepTable& table) {
  std::vector<VariedPath> paths;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const Json settings = Json::parse(table.rows[r].settings).value();
    for (const JsonMember& setting : settings.members()) {
      auto at = std::find_if(paths.begin(), paths.end(), [&](const VariedPath& p) { return p.path == setting.key; });
      if (at == paths.end()) at = paths.insert(at, {setting.key, {}, std::vector<int>(table.rows.size(), -1)});
      const std::string text = value_text(setting.value);
      auto value = std::find(at->values.begin(), at->values.end(), text);
      if (value == at->values.end()) value = at->values.insert(value, text);
      at->value_of[r] = static_cast<int>(value - at->values.begin());
      at->is_number = at->is_number && !text.empty() && text[0] >= '0' && text[0] <= '9';
    }
  }
  std::erase_if(paths, [](const VariedPath& p) { return !varies(p); });
  name_values(paths, table);
  const std::vector<VariedPath> earlier = paths;
  std::erase_if(paths, [&](const VariedPath& p) {
    if (std::find(p.value_of.begin(), p.value_of.end(), -1) == p.value_of.end()) return false;
    for (const VariedPath& other : earlier) {
      if (other.path == p.path) break;
      if (determines(other, p)) return true;
    }
    return false;
  });
  for (VariedPath& p : paths)
    p.sets_devices = is_about_devices(p.path) && std::none_of(paths.begin(), paths.end(), [&](const VariedPath& other) {
                       return is_within(other.path, "run.schedule") && determines(other, p);
                     });
  return paths;
}

}  // namespace stagecraft
