#pragma once

#include <string>

#include <fmt/core.h>

namespace stagecraft {

/// One of the headline numbers that a page begins with, in HTML; they stand together in a <div class="cards">.
inline std::string card(const std::string& label, const std::string& value, const std::string& more) {
  return fmt::format(
      "<div class=\"card\"><div class=\"label\">{}</div><div class=\"value\">{}</div><div "
      "class=\"more\">{}</div></div>",
      label, value, more);
}

}  // namespace stagecraft
