#pragma once

#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/core/json.hpp"

namespace stagecraft::serve {

/// Parameters of a request. A parameter that is absent or null has its fallback; one of another type is an InputError
/// that names it.
class Parameters {
 public:
  explicit Parameters(const Json& object) : object_(object) {}

  bool has(const char* name) const { return find(name) != nullptr; }
  std::string text(const char* name, const std::string& fallback = {}) const;
  double number(const char* name, double fallback) const;
  int whole(const char* name, int fallback) const;
  bool flag(const char* name, bool fallback) const;
  std::vector<std::string> texts(const char* name) const;  ///< Empty when absent.
  const Json::Array& items(const char* name) const;        ///< Likewise.
  const Json* find(const char* name) const;                ///< Null when absent or null.

 private:
  const Json& object_;
};

}  // namespace stagecraft::serve
