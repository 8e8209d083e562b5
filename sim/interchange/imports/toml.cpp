// Parses TOML with toml++ into values by dotted path, each with its line; torchtitan.cpp calls it.

#include "sim/interchange/imports/toml.hpp"

#include <sstream>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 50
#include <toml++/toml.h>

namespace stagecraft {
namespace {

[[noreturn]] void refuse(const std::string& file, const toml::source_position& at, std::string message) {
  throw InputError({{{file, static_cast<int>(at.line), static_cast<int>(at.column)},
                     {},
                     std::move(message),
                     "tables, and values such as 8, \"text\", true or [1, 2]",
                     "toml"}});
}

/// toml++ makes a table for each part of a key, and recurses when it frees them.
void check_dots(std::string_view text, const std::string& file) {
  constexpr int kMostDots = 1000;
  std::uint32_t line = 1;
  int dots = 0;
  for (const char c : text) {
    line += c == '\n';
    if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos) dots = 0;
    if (c == '.' && ++dots > kMostDots) refuse(file, {line, 1}, fmt::format("a key has more than {} parts", kMostDots));
  }
}

Json to_json(const toml::node& node) {
  if (const toml::array* list = node.as_array()) {
    JsonArray items;
    for (const toml::node& item : *list) items.push_back(to_json(item));
    return items;
  }
  if (const toml::table* table = node.as_table()) {
    JsonObject members;
    for (const auto& [key, value] : *table) members.push_back({std::string(key.str()), to_json(value)});
    return members;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  std::ostringstream moment;  // A date or a time.
  node.visit([&](const auto& value) {
    if constexpr (toml::is_chronological<decltype(value)>) moment << value.get();
  });
  return moment.str();
}

void flatten(const toml::table& table, const std::string& prefix, std::map<std::string, TomlValue>& values) {
  for (const auto& [key, value] : table) {
    const std::string path = prefix + std::string(key.str());
    if (const toml::table* inner = value.as_table())
      flatten(*inner, path + ".", values);
    else
      values.emplace(path, TomlValue{to_json(value), static_cast<int>(key.source().begin.line)});
  }
}

}  // namespace

std::map<std::string, TomlValue> read_toml(std::string_view text, const std::string& file) {
  check_dots(text, file);
  std::map<std::string, TomlValue> values;
  try {
    flatten(toml::parse(text, file), "", values);
  } catch (const toml::parse_error& e) {
    std::string_view what = e.description();
    constexpr std::string_view kPrefix = "Error while parsing ";
    if (what.starts_with(kPrefix)) what.remove_prefix(kPrefix.size());
    refuse(file, e.source().begin, fmt::format("this is no TOML: {}", what));
  }
  return values;
}

}  // namespace stagecraft
