// Reads the parameters of a request of `serve` as typed values; an InputError names the parameter that has another type
// or range.

#include "tools/stagecraft/serve/parameters.hpp"

#include <cmath>

#include <fmt/core.h>

namespace stagecraft::serve {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& type) {
  throw InputError(fmt::format("the parameter '{}' is not {}", name, type));
}

}  // namespace

int whole_number(const Json& value, const std::string& parameter, int low, int high) {
  const double number = value.is_number() ? value.number() : std::numeric_limits<double>::quiet_NaN();
  if (!(number >= low && number <= high) || number != std::floor(number))
    refuse(parameter, fmt::format("a whole number from {} to {}", low, high));
  return static_cast<int>(number);
}

const Json::Array& list_items(const Json& value, const std::string& parameter) {
  if (!value.is_array()) refuse(parameter, "a list");
  return value.items();
}

Parameters::Parameters(const Json& object, const std::string& name) : object_(object) {
  if (!object.is_object()) refuse(name, "an object");
}

const Json* Parameters::find(const char* name) const {
  const Json* value = object_.find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string Parameters::text(const char* name, const std::string& fallback) const {
  const Json* value = find(name);
  if (value && !value->is_string()) refuse(name, "a text");
  return value ? value->text() : fallback;
}

double Parameters::number(const char* name, double fallback) const {
  const Json* value = find(name);
  if (value && !value->is_number()) refuse(name, "a number");
  const double number = value ? value->number() : fallback;
  if (!std::isfinite(number) || number < 0) refuse(name, "a finite number from 0 on");
  return number;
}

int Parameters::whole(const char* name, int fallback, int low, int high) const {
  const Json* value = find(name);
  return value ? whole_number(*value, name, low, high) : fallback;
}

bool Parameters::flag(const char* name, bool fallback) const {
  const Json* value = find(name);
  if (value && !value->is_bool()) refuse(name, "true or false");
  return value ? *value == Json(true) : fallback;
}

std::vector<std::string> Parameters::texts(const char* name) const {
  std::vector<std::string> list;
  for (const Json& item : items(name)) {
    if (!item.is_string()) refuse(name, "a list of texts");
    list.push_back(item.text());
  }
  return list;
}

const Json::Array& Parameters::items(const char* name) const {
  static const Json::Array none;
  const Json* value = find(name);
  return value ? list_items(*value, name) : none;
}

}  // namespace stagecraft::serve
