// What checking, the schema, `explain` and overrides share: checks of scalars, and the tables inside of a field.

#include "sim/config/walk.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/config/synonyms.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::config {

std::string under(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + '.' + std::string(key);
}

const Field& innermost(const Field& field) {
  const Field* inner = &field;
  while ((inner->kind == Field::Kind::List || inner->kind == Field::Kind::Table) && inner->item) inner = &*inner->item;
  return *inner;
}

std::vector<const MapSpec*> tables_in(const Field& field) {
  const Field& inner = innermost(field);
  std::vector<const MapSpec*> tables;
  if (inner.map) tables.push_back(inner.map);
  if (inner.kind == Field::Kind::Variant) {
    for (const Variant& variant : inner.variants())
      if (variant.fields) tables.push_back(variant.fields);
  }
  return tables;
}

std::vector<std::string> places_of(const MapSpec& root, const std::string& root_path, std::string_view key) {
  std::vector<std::pair<std::string, const MapSpec*>> queue{{root_path, &root}};
  std::set<const MapSpec*> seen{&root};
  std::vector<std::string> places;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const auto [path, spec] = queue[i];
    if (spec->find(key) && std::find(places.begin(), places.end(), path) == places.end()) places.push_back(path);
    for (const Field& field : spec->fields)
      for (const MapSpec* inner : tables_in(field))
        if (seen.insert(inner).second) queue.emplace_back(under(path, field.name), inner);
  }
  return places;
}

bool names_its_own_field(const Variant& variant) { return variant.fields && variant.fields->find(variant.name); }

const Variant* meant_by_key(const Value& map, const std::vector<Variant>& variants) {
  for (const Variant& variant : variants)
    if (names_its_own_field(variant) && map.has(variant.name)) return &variant;
  return nullptr;
}

namespace {

struct Wrong {
  std::string message, help, code;
};

// A number in quotes is a text in YAML, so it is one here.
std::optional<Wrong> check_quotes(const Value& value) {
  if (!value.quoted) return {};
  return Wrong{fmt::format("'{}' is in quotes, so it is a text", value.text),
               fmt::format("write {} without quotes", value.text), "wrong-type"};
}

/// What to do in place of a number that means "none" elsewhere: a field whose text says what its absence means.
std::string leave_out(const Field& field) {
  constexpr std::string_view kDefault = "Default: ";
  const std::size_t at = field.text_doc.find(kDefault);
  if (field.required || field.default_text || at == std::string::npos) return {};
  const std::string absence = field.text_doc.substr(at + kDefault.size());
  return "leave it out for " + absence.substr(0, absence.find('.'));
}

std::optional<Wrong> check_number(const Value& value, const Field& field) {
  if (auto wrong = check_quotes(value)) return wrong;
  const bool whole = field.kind == Field::Kind::Integer;
  std::string why;
  const auto number = parse_number(value.text, why);
  if (!number) return Wrong{why, what_to_write(field), "wrong-type"};
  if (whole && *number != std::floor(*number)) {
    return Wrong{fmt::format("'{}' is not a whole number", value.text), what_to_write(field), "wrong-type"};
  }
  if (*number >= field.low && *number <= field.high) return {};
  const std::string low = shortest(field.low), high = shortest(field.high);
  if (std::isfinite(field.low) && std::isfinite(field.high)) {
    return Wrong{fmt::format("{} is outside {} to {}", value.text, low, high),
                 *number < field.low ? leave_out(field) : std::string(), "out-of-range"};
  }
  const bool below = *number < field.low;
  return Wrong{
      fmt::format("{} is {} {}", value.text, below ? "below" : "above", below ? low : high), {}, "out-of-range"};
}

std::optional<Wrong> check_boolean(const Value& value) {
  if (auto wrong = check_quotes(value)) return wrong;
  if (value.text == "true" || value.text == "false") return {};
  std::string word = value.text;
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  const auto is_one_of = [&](std::initializer_list<const char*> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  std::string help = "write true or false";
  if (is_one_of({"yes", "on", "true", "y", "1"})) help = "write true";
  if (is_one_of({"no", "off", "false", "n", "0"})) help = "write false";
  return Wrong{fmt::format("'{}' is neither true nor false", value.text), help, "wrong-type"};
}

std::optional<Wrong> check_quantity(const Value& value, const Field& field) {
  std::string why;
  if (!parse_quantity(field.dimension, value.text, why)) return Wrong{why, {}, "wrong-unit"};
  const bool bare = value.text.find_first_not_of("+-.0123456789eE") == std::string::npos;
  return bare ? check_quotes(value) : std::nullopt;
}

std::optional<Wrong> check_choice(const Value& value, const Field& field) {
  const std::vector<std::string> words = field.choices();
  if (std::find(words.begin(), words.end(), value.text) != words.end()) return {};
  return Wrong{fmt::format("'{}' is not known", value.text), suggest_value(value.text, words), "unknown-value"};
}

std::optional<Wrong> check_text(const Value& value, const Field& field) {
  switch (field.kind) {
    case Field::Kind::Integer:
    case Field::Kind::Real:
      return check_number(value, field);
    case Field::Kind::Boolean:
      return check_boolean(value);
    case Field::Kind::Quantity:
      return check_quantity(value, field);
    case Field::Kind::Choice:
      return check_choice(value, field);
    default:
      return {};
  }
}

}  // namespace

std::string what_to_write(const Field& field) {
  const bool counted = field.kind == Field::Kind::Integer || field.kind == Field::Kind::Real;
  return (counted || field.kind == Field::Kind::Quantity ? "write a " : "write ") + type_text(field);
}

void check_scalar(const Value& value, const Field& field, const std::string& path, Problems& problems) {
  if (const auto wrong = check_text(value, field)) {
    problems.add(value.where, path, wrong->message, wrong->help, wrong->code);
  }
}

}  // namespace stagecraft::config
