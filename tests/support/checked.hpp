#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

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

/// Expects that every entry of a catalog has a summary and a source, and that sentences document its fields.
template <class Catalog>
void check_documented(const Catalog& catalog) {
  for (const auto* def : catalog) {
    CAPTURE(def->name);
    CHECK_FALSE(def->summary.empty());
    CHECK_FALSE(def->source.empty());
    for (const config::Field& field : def->fields->fields) {
      CAPTURE(field.name);
      CHECK(field.text_doc.ends_with('.'));
    }
  }
}

}  // namespace stagecraft::test
