#pragma once

#include <string_view>

namespace stagecraft {

/// Whether `name` is `pattern`, in which * stands for any letters, also none.
inline bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (name.substr(0, star) != pattern.substr(0, star)) return false;
  for (std::size_t at = star; at <= name.size(); ++at)
    if (matches(pattern.substr(star + 1), name.substr(at))) return true;
  return false;
}

}  // namespace stagecraft
