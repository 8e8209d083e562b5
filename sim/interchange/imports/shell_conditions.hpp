#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "sim/interchange/imports/shell_words.hpp"

namespace stagecraft {

/// Whether commands such as [[ 7B == 13B ]] or test 2 -gt 1 hold, whose variables have their values; `joins` is what
/// follows each: "&&;". Nothing where a word is not known, or a command is another one. A variable that the script does
/// not set is taken as empty where the command asks whether it is; these are added to `taken_as_empty`.
std::optional<bool> shell_condition(std::span<const ShellCommand>, std::string_view joins,
                                    std::set<std::string>& taken_as_empty);

/// Whether a word has one of the patterns of `case`, such as 7B|'8B'; nothing where that is not known.
std::optional<bool> shell_pattern(std::string_view patterns, const std::string& word);

}  // namespace stagecraft
