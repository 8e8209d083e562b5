#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

/// What a software stack does, fact by fact, and its source. Returns nothing for a word that names no stack.
std::optional<std::string> software_text(std::string_view word);

/// Flags, effect and what each stack has of a feature, for a path such as software.overlap.tensor. Returns nothing for
/// another one.
std::optional<std::string> overlap_text(std::string_view path);

/// Summary and source of every stack.
std::string software_list();

}  // namespace stagecraft
