// Lists the fields in which the scenarios of kept runs differ, for the lines below the table of `compare`.

#include "tools/stagecraft/run_table.hpp"

#include <filesystem>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "sim/config/value.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using Fields = std::map<std::string, std::string>;

/// Scalars by their paths; a list of scalars is one text.
void flatten(const config::Value& value, const std::string& path, Fields& fields) {
  if (value.is_scalar()) fields[path] = value.text;
  for (const config::Member& m : value.members) flatten(m.value, path.empty() ? m.key : path + "." + m.key, fields);
  std::vector<std::string> scalars;
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    if (value.items[i].is_scalar())
      scalars.push_back(value.items[i].text);
    else
      flatten(value.items[i], fmt::format("{}[{}]", path, i), fields);
  }
  if (!scalars.empty()) fields[path] = "[" + join(scalars) + "]";
}

std::optional<std::string> value_at(const Fields& fields, const std::string& path) {
  const auto field = fields.find(path);
  return field == fields.end() ? std::nullopt : std::optional(field->second);
}

std::string shown(const Fields& fields, const std::string& path) {
  constexpr std::size_t kLongest = 40;
  const std::string text = value_at(fields, path).value_or("-");
  return text.size() > kLongest ? text.substr(0, kLongest - 3) + "..." : text;
}

}  // namespace

std::string scenario_changes_text(const std::vector<std::string>& folders) {
  constexpr std::size_t kMost = 12;
  std::vector<Fields> scenarios;
  Fields paths;
  for (const std::string& given : folders) {
    std::error_code error;
    const std::filesystem::path path(given);
    const auto folder = std::filesystem::is_directory(path, error) ? path : path.parent_path();
    const std::string file = (folder / "scenario.yaml").string();
    if (!std::filesystem::is_regular_file(file, error)) return {};
    config::Problems problems;
    Fields fields;
    flatten(config::parse_yaml(read_file(file), file, problems), "", fields);
    problems.throw_if_any();
    paths.insert(fields.begin(), fields.end());
    scenarios.push_back(std::move(fields));
  }
  std::vector<std::string> lines;
  for (const auto& [path, first] : paths) {
    std::vector<std::string> values;
    bool differs = false;
    for (const Fields& fields : scenarios) {
      values.push_back(shown(fields, path));
      differs = differs || value_at(fields, path) != value_at(scenarios.front(), path);
    }
    if (differs) lines.push_back(fmt::format("  {}: {}", path, join(values, " -> ")));
  }
  if (lines.empty()) return {};
  const std::size_t left_out = lines.size() > kMost ? lines.size() - kMost : 0;
  lines.resize(lines.size() - left_out);
  if (left_out > 0) lines.push_back(fmt::format("  and {} more", left_out));
  return "what changed:\n" + join(lines, "\n") + "\n";
}

}  // namespace stagecraft
