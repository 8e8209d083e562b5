// Makes the rows of field tables (integer, choice, quantity, list, variant), says what each row takes, and reads
// numbers and quantities from checked values.

#include "sim/config/fields.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft::config {
namespace {

Field field(std::string name, Field::Kind kind) {
  Field new_field;
  new_field.name = std::move(name);
  new_field.kind = kind;
  return new_field;
}

std::string range_text(const Field& f) {
  const bool low = std::isfinite(f.low), high = std::isfinite(f.high);
  if (low && high) return fmt::format(" from {} to {}", shortest(f.low), shortest(f.high));
  if (low) return fmt::format(", at least {}", shortest(f.low));
  return high ? fmt::format(", at most {}", shortest(f.high)) : "";
}

std::string items_text(const Field& f) { return f.item->kind == Field::Kind::Map ? "maps" : type_text(*f.item); }

double number_of(const Value& value) {
  std::string why;
  const auto number = value.is_scalar() ? parse_number(value.text, why) : std::nullopt;
  if (!number) throw InternalError(fmt::format("an unchecked value is read as a number: '{}'", value.text));
  return *number;
}

}  // namespace

const Field* MapSpec::find(std::string_view name) const {
  for (const Field& f : fields)
    if (f.name == name) return &f;
  return nullptr;
}

Field text(std::string name) { return field(std::move(name), Field::Kind::Text); }

Field choice(std::string name, std::function<std::vector<std::string>()> words) {
  Field new_field = field(std::move(name), Field::Kind::Choice);
  new_field.choices = std::move(words);
  return new_field;
}

Field choice(std::string name, std::vector<std::string> words) {
  return choice(std::move(name), [words = std::move(words)] { return words; });
}

Field integer(std::string name, double low, double high) {
  Field new_field = real(std::move(name), low, high);
  new_field.kind = Field::Kind::Integer;
  return new_field;
}

Field real(std::string name, double low, double high) {
  Field new_field = field(std::move(name), Field::Kind::Real);
  new_field.low = low;
  new_field.high = high;
  return new_field;
}

Field boolean(std::string name) { return field(std::move(name), Field::Kind::Boolean); }

Field quantity(std::string name, Dimension dimension) {
  Field new_field = field(std::move(name), Field::Kind::Quantity);
  new_field.dimension = dimension;
  return new_field;
}

Field map(std::string name, const MapSpec& spec) {
  Field new_field = field(std::move(name), Field::Kind::Map);
  new_field.map = &spec;
  return new_field;
}

Field list(std::string name, Field item) {
  Field new_field = field(std::move(name), Field::Kind::List);
  new_field.item = std::make_shared<Field>(std::move(item));
  return new_field;
}

Field table(std::string name, Field item) {
  Field new_field = list(std::move(name), std::move(item));
  new_field.kind = Field::Kind::Table;
  return new_field;
}

Field variant(std::string name, std::string selector, std::function<std::vector<Variant>()> variants,
              const MapSpec* common) {
  Field new_field = field(std::move(name), Field::Kind::Variant);
  new_field.selector = std::move(selector);
  new_field.variants = std::move(variants);
  new_field.map = common;
  return new_field;
}

Field any(std::string name) { return field(std::move(name), Field::Kind::Any); }

std::vector<std::string> names_of(const std::vector<Variant>& variants) {
  std::vector<std::string> names;
  for (const Variant& v : variants) names.push_back(v.name);
  return names;
}

bool is_by_name(const Field& f) {
  return f.kind == Field::Kind::List && !f.by_position && f.item && f.item->map && f.item->map->find("name");
}

std::string type_text(const Field& f) {
  switch (f.kind) {
    case Field::Kind::Text:
      return "text";
    case Field::Kind::Choice:
      return "one of " + join(f.choices()) + (f.list_words.empty() ? "" : "; or a list of " + join(f.list_words));
    case Field::Kind::Integer:
      return "whole number" + range_text(f);
    case Field::Kind::Real:
      return "number" + range_text(f);
    case Field::Kind::Boolean:
      return "true or false";
    case Field::Kind::Quantity:
      return fmt::format("{} in {}", dimension_name(f.dimension), join(unit_names(f.dimension)));
    case Field::Kind::Map:
      return "map";
    case Field::Kind::List:
      return fmt::format("list of {}{}{}{}", items_text(f), f.may_stand_alone ? ", or one alone" : "",
                         is_by_name(f) ? ", or map by name" : "",
                         f.count_key.empty() ? "" : ", or " + type_text(*f.item->map->find(f.count_key)));
    case Field::Kind::Table:
      return "map from names to " + items_text(f);
    case Field::Kind::Variant:
      return fmt::format("{}one of {}, alone or as `{}` of a map", f.by_reference ? "a name, a file, or " : "",
                         join(names_of(f.variants())), f.selector);
    case Field::Kind::Any:
      return "anything";
  }
  return {};
}

int as_int(const Value& value) {
  const double number = number_of(value);
  STAGECRAFT_CHECK(number == std::floor(number));
  STAGECRAFT_CHECK(std::abs(number) <= static_cast<double>(std::numeric_limits<int>::max()));
  return static_cast<int>(number);
}

double as_real(const Value& value) { return number_of(value); }

bool as_bool(const Value& value) {
  STAGECRAFT_CHECK(value.text == "true" || value.text == "false");
  return value.text == "true";
}

double as_quantity(const Value& value, Dimension dimension) {
  std::string why;
  const auto base = parse_quantity(dimension, value.text, why);
  if (!base) throw InternalError("an unchecked value is read as a quantity: " + why);
  return *base;
}

Seconds as_seconds(const Value& value) { return {as_quantity(value, Dimension::Time)}; }
Bytes as_bytes(const Value& value) { return {as_quantity(value, Dimension::Size)}; }
Flops as_flops(const Value& value) { return {as_quantity(value, Dimension::Work)}; }
Bandwidth as_bandwidth(const Value& value) { return {as_quantity(value, Dimension::Bandwidth)}; }
FlopRate as_flop_rate(const Value& value) { return {as_quantity(value, Dimension::WorkRate)}; }
Watts as_watts(const Value& value) { return {as_quantity(value, Dimension::Power)}; }
double as_share(const Value& value) { return as_quantity(value, Dimension::Share); }

}  // namespace stagecraft::config
