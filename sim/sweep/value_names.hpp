#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/value.hpp"
#include "sim/core/json.hpp"

namespace stagecraft {

/// Labels that a sweep file gives values, as in {label: "4:1", value: {...}}: by path, and then by the value as text.
using AxisLabels = std::map<std::string, std::map<std::string, std::string>>;

/// The label of a value of an axis, which becomes the value alone; nothing where it has none.
std::optional<std::string> take_label(config::Value&);

/// How the values are written that have labels: as one_line() does, or as JSON.
enum class LabelKey { Text, Json };

/// The labels in the text of a sweep file; an order of the user, {csv: FILE}, has the name of its file without one.
AxisLabels axis_labels(const std::string& sweep_text, LabelKey = LabelKey::Text);

/// The value as YAML on one line.
std::string one_line(const Json& value);

/// What people call the values of a path, by their text: the labels of the sweep; of maps without labels the fields
/// that differ, without their keys; otherwise nothing. Different values have different names.
class ValueNames {
 public:
  /// `settings`: of each point, a map from path to value.
  ValueNames(const std::vector<Json>& settings, const AxisLabels&);

  std::string name(const std::string& path, const Json& value) const;
  /// Whether values of the path have names other than their texts.
  bool has_names(const std::string& path) const { return names_.count(path) > 0; }
  std::vector<std::string> paths() const;

 private:
  std::map<std::string, std::map<std::string, Json>> values_;
  std::map<std::string, std::map<std::string, std::string>> names_;
};

}  // namespace stagecraft
