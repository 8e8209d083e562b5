#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "sim/config/fields.hpp"

namespace stagecraft::test {

/// The map in this YAML text, checked and filled in by the field table of a catalog entry.
inline config::Value checked(std::string_view yaml, const config::MapSpec& fields) {
  config::Problems problems;
  const config::Value tree = config::parse_yaml(yaml, "test.yaml", problems);
  problems.throw_if_any();
  config::Value map = config::check(tree, fields, "", problems);
  problems.throw_if_any();
  return map;
}

/// Removes `keys`, which every file of a kind has, from a preset, and leaves the keys of its catalog entry.
inline config::Value without(config::Value map, std::initializer_list<std::string_view> keys) {
  std::erase_if(map.members, [&](const config::Member& member) {
    return std::find(keys.begin(), keys.end(), member.key) != keys.end();
  });
  return map;
}

/// The messages of the InputError that `act` throws, one a line; "nothing" when it throws none.
template <class Act>
std::string input_error_of(Act&& act) {
  try {
    act();
  } catch (const InputError& error) {
    std::string text;
    for (const Diagnostic& d : error.problems())
      text += std::to_string(d.where.line) + ": " + d.path + ": " + d.message + " [" + d.help + "]\n";
    return text;
  }
  return "nothing";
}

}  // namespace stagecraft::test
