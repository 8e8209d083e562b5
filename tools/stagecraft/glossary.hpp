#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// Explains a word in the output of a command: a term, the heading of a column, an operation such as 0F3 or 3AR0, a
/// part of the time, or the name of a schedule, planner, weights policy, backend, generator, builder, collective
/// algorithm, optimizer or task. The text ends with a line break. Returns nothing for an unknown word.
std::optional<std::string> glossary_text(std::string_view word);

/// All words with an entry, for suggestions.
std::vector<std::string> glossary_words();

}  // namespace stagecraft
