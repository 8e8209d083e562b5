#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "sim/core/diagnostic.hpp"
#include "sim/core/from_chars.hpp"

namespace stagecraft::sg {

/// The error for a platform file that SimGrid refuses. A message "Parse error at FILE:LINE: what" gives the line, if
/// FILE has no colon.
inline InputError platform_error(const std::string& file, std::string_view message, int line = 0) {
  constexpr std::string_view mark = "Parse error at ";
  message = message.substr(0, message.find('\n'));
  if (message.starts_with(mark)) {
    message.remove_prefix(std::min(message.size(), message.find(':', mark.size()) + 1));
    const auto [rest, error] = from_chars(message.data(), message.data() + message.size(), line);
    if (error == std::errc{}) message.remove_prefix(rest - message.data());
    if (message.starts_with(": ")) message.remove_prefix(2);
  }
  return InputError({{{file, line, line > 0 ? 1 : 0},
                      {},
                      fmt::format("SimGrid does not take this platform: {}", message),
                      {},
                      "simgrid-platform"}});
}

}  // namespace stagecraft::sg
