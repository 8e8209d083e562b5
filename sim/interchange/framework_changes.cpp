// A change that a suggestion makes, in the options of the scenario's training framework: --tp-comm-overlap for
// software.overlap.tensor=true, found by comparing the exports of both runs.

#include "sim/interchange/framework_changes.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/core/json_reader.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// Options, and the whole text of each with its value.
using OptionTexts = std::vector<std::pair<std::string, std::string>>;

void add_json(const Json& json, const std::string& path, OptionTexts& options) {
  for (const JsonMember& m : json.members()) {
    const std::string inner = path.empty() ? m.key : path + "." + m.key;
    if (m.value.is_object())
      add_json(m.value, inner, options);
    else
      options.push_back({inner, inner + ": " + m.value.dump()});
  }
}

/// Arguments on lines of their own, sections of TOML, or an object of JSON.
OptionTexts options_of_configuration(const std::string& text) {
  OptionTexts options;
  if (text.starts_with('{')) {
    add_json(parse_json(text), "", options);
    return options;
  }
  std::string section;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with("--")) options.push_back({line.substr(0, line.find(' ')), line});
    if (line.starts_with('[')) section = line.substr(1, line.find(']') - 1) + ".";
    if (const std::size_t at = line.find(" = "); at != std::string::npos && !line.starts_with('#'))
      options.push_back({section + line.substr(0, at), section + line});
  }
  return options;
}

const std::string* find(const OptionTexts& options, const std::string& option) {
  const auto at = std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.first == option; });
  return at == options.end() ? nullptr : &at->second;
}

}  // namespace

std::string framework_changes(const std::string& before, const std::string& after) {
  const OptionTexts old = options_of_configuration(before), now = options_of_configuration(after);
  std::string text;
  const auto add = [&](const std::string& change, const char* between) {
    text += (text.empty() ? "" : between) + change;
  };
  for (const auto& [option, written] : now)
    if (const std::string* was = find(old, option); !was || *was != written)
      add(written, option.starts_with("--") ? " " : ", ");
  for (const auto& [option, written] : old)
    if (!find(now, option)) add("without " + option, ", ");
  return text;
}

}  // namespace stagecraft
