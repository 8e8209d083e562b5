#include "tools/stagecraft/serve/parameters.hpp"

#include <cmath>
#include <limits>

#include <fmt/core.h>

namespace stagecraft::serve {
namespace {

[[noreturn]] void refuse(const char* name, const char* type) {
  throw InputError(fmt::format("the parameter '{}' is not {}", name, type));
}

}  // namespace

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

int Parameters::whole(const char* name, int fallback) const {
  const double value = number(name, fallback);
  if (value != std::floor(value) || value > std::numeric_limits<int>::max()) refuse(name, "a whole number");
  return static_cast<int>(value);
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
  if (value && !value->is_array()) refuse(name, "a list");
  return value ? value->items() : none;
}

}  // namespace stagecraft::serve
