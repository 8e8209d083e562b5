#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

/// What a software stack does, fact by fact, and its source. Returns nothing for a word that names no stack.
std::optional<std::string> software_text(std::string_view word);

/// Summary and source of every stack.
std::string software_list();

}  // namespace stagecraft
