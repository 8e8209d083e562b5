#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace stagecraft {

/// "1 device", "2 devices", "3 micro-batches".
inline std::string counted(std::int64_t count, std::string_view what, std::string_view ending = "s") {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : ending);
}

}  // namespace stagecraft
