#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/config/units.hpp"
#include "sim/config/value.hpp"

namespace stagecraft::fuzz {

/// Whether two scalars mean the same: quotes matter if a number or a boolean would become text.
inline bool same_scalar(const config::Value& a, const config::Value& b) {
  std::string why;
  const bool plain = a.text == "true" || a.text == "false" || config::parse_number(a.text, why);
  return a.text == b.text && (a.quoted == b.quoted || !plain);
}

/// Whether two trees mean the same, wherever they were written.
inline bool same(const config::Value& a, const config::Value& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size() || a.members.size() != b.members.size()) return false;
  if (a.is_scalar() && !same_scalar(a, b)) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!same(a.items[i], b.items[i])) return false;
  for (std::size_t i = 0; i < a.members.size(); ++i)
    if (a.members[i].key != b.members[i].key || !same(a.members[i].value, b.members[i].value)) return false;
  return true;
}

/// Reads a text that the program wrote, which must have no problem.
inline config::Value read_back(const std::string& text) {
  config::Problems problems;
  config::Value tree = config::parse_yaml(text, "<written>", problems);
  if (!problems.empty()) std::abort();
  return tree;
}

/// Checks that every problem has a message and a place, and can be printed.
inline void print(const config::Problems& problems) {
  for (const Diagnostic& problem : problems.list())
    if (problem.message.empty() || problem.where.line < 0 || problem.where.column < 0) std::abort();
  if (!problems.empty() && render(problems.list()).empty()) std::abort();
}

/// The text up to the next line of three percent signs; that line is removed as well.
inline std::string_view next_file(std::string_view& text) {
  constexpr std::string_view kBetween = "\n%%%\n";
  const std::size_t end = text.find(kBetween);
  const std::string_view file = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + kBetween.size());
  return file;
}

}  // namespace stagecraft::fuzz
