// Conditions of a shell script as far as its own text decides them: comparisons of texts and of whole numbers.

#include "sim/interchange/imports/shell_conditions.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <vector>

#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

bool is_unknown(std::string_view text) { return text.find_first_of("$`") != std::string_view::npos; }
bool is_glob(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

bool compares_texts(const std::string& word) { return word == "=" || word == "==" || word == "!="; }

std::optional<bool> compare(const std::string& left, const std::string& by, const std::string& right) {
  if (compares_texts(by)) return is_glob(right) ? std::nullopt : std::optional((left == right) == (by != "!="));
  const std::optional<std::int64_t> a = whole_number(left), b = whole_number(right);
  if (!a || !b) return {};
  if (by == "-eq") return *a == *b;
  if (by == "-ne") return *a != *b;
  if (by == "-gt") return *a > *b;
  if (by == "-ge") return *a >= *b;
  if (by == "-lt") return *a < *b;
  return by == "-le" ? std::optional(*a <= *b) : std::nullopt;
}

/// "$NAME", "${NAME}", or arguments of the script: "$1", "$@". A shell always has $?, $$, $# and $0.
bool is_variable(std::string_view text) {
  if (!text.starts_with('$')) return false;
  text.remove_prefix(1);
  if (text.starts_with('{') && text.ends_with('}')) text = text.substr(1, text.size() - 2);
  if (text == "@" || text == "*") return true;
  return !text.empty() && text != "0" &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

/// An operator before one word, whose value is known. Files are not known, but for those without a name.
std::optional<bool> ask(const std::string& operation, const std::string& word) {
  if (operation == "-z" || operation == "-n") return word.empty() == (operation == "-z");
  const bool is_of_file = operation == "-d" || operation == "-f" || operation == "-e" || operation == "-s";
  return is_of_file && word.empty() ? std::optional(false) : std::nullopt;
}

/// The words between brackets or after `test`.
std::optional<bool> holds(std::vector<std::string> words, std::set<std::string>& taken_as_empty) {
  if (words.empty()) return {};
  const std::string first = words.front(), last = words.back();
  const bool has_brackets = (first == "[" && last == "]") || (first == "[[" && last == "]]");
  if (!has_brackets && first != "test") return {};
  if (has_brackets) words.pop_back();
  words.erase(words.begin());
  const std::string asked = words.empty() ? "" : words[0];
  if (words.size() == 2 && (asked == "-z" || asked == "-n") && is_variable(words[1])) {
    taken_as_empty.insert(words[1]);
    return asked == "-z";
  }
  if (std::any_of(words.begin(), words.end(), is_unknown)) return {};
  if (words.size() < 2) return !asked.empty();
  if (words.size() == 3) return compare(words[0], words[1], words[2]);
  return words.size() == 2 ? ask(asked, words[1]) : std::nullopt;
}

}  // namespace

std::optional<bool> shell_condition(std::span<const ShellCommand> commands, std::string_view joins,
                                    std::set<std::string>& taken_as_empty) {
  std::optional<bool> result;
  std::set<std::string> empty;
  bool is_open = false;  // [[ a == a && b == b ]] is two commands here.
  for (std::size_t i = 0; i < commands.size(); ++i) {
    std::vector<std::string> words;
    if (is_open) words.emplace_back("[[");
    for (const ShellWord& word : commands[i]) words.push_back(word.text);
    is_open = words.front() == "[[" && words.back() != "]]";
    if (is_open) words.emplace_back("]]");
    const std::string_view join = i == 0 ? "" : joins.substr(0, 2);
    const std::optional<bool> one = holds(std::move(words), empty);
    if (i == 0)
      result = one;
    else if (join == "&&")
      result = result == false || one == false ? std::optional(false) : result && one ? result : std::nullopt;
    else if (join == "||")
      result = result == true || one == true ? std::optional(true) : result && one ? result : std::nullopt;
    else
      return {};
    joins.remove_prefix(join.size());
  }
  if (joins.find_first_not_of(";\n") != std::string_view::npos) return {};
  if (result) taken_as_empty.merge(empty);
  return result;
}

std::optional<bool> shell_pattern(std::string_view patterns, const std::string& word) {
  bool may_hold = false;
  for (std::string pattern : split(std::string(patterns), '|')) {
    erase_if(pattern, [](char c) { return c == ' ' || c == '\t' || c == '(' || c == '"' || c == '\''; });
    if (pattern == "*" || (pattern == word && !is_unknown(word))) return true;
    may_hold = may_hold || is_glob(pattern) || is_unknown(pattern) || is_unknown(word);
  }
  return may_hold ? std::nullopt : std::optional(false);
}

}  // namespace stagecraft
