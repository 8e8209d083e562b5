#pragma once

#include <limits>
#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/core/json.hpp"

namespace stagecraft::serve {

constexpr int kLargestWhole = std::numeric_limits<int>::max();

/// A value as a whole number from `low` to `high`: the only place where a number of a request becomes an int.
/// InputError that names `parameter` for any other value.
int whole_number(const Json& value, const std::string& parameter, int low, int high);

/// The items of a value; InputError that names `parameter` where it is no list.
const Json::Array& list_items(const Json& value, const std::string& parameter);

/// Parameters of a request. A parameter that is absent or null has its fallback; one of another type is an InputError
/// that names it.
class Parameters {
 public:
  /// `name` is the parameter that the object is the value of. InputError where it is no object.
  Parameters(const Json& object, const std::string& name);

  bool has(const char* name) const { return find(name) != nullptr; }
  std::string text(const char* name, const std::string& fallback = {}) const;
  double number(const char* name, double fallback) const;
  int whole(const char* name, int fallback, int low = 0, int high = kLargestWhole) const;
  bool flag(const char* name, bool fallback) const;
  std::vector<std::string> texts(const char* name) const;  ///< Empty when absent.
  const Json::Array& items(const char* name) const;        ///< Likewise.
  const Json* find(const char* name) const;                ///< Null when absent or null.

 private:
  const Json& object_;
};

}  // namespace stagecraft::serve
