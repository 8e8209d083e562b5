#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// What `stagecraft explain` says about a field by its dotted path, a term, an operation or a name. The text ends with
/// a line break. InputError with a suggestion for an unknown word.
std::string explanation(const std::string& path);

/// Explains a word in the output of a command: a term, the heading of a column, an operation such as 0F3 or 3AR0, a
/// part of the time, or the name of a schedule, planner, weights policy, backend, generator, builder, collective
/// algorithm, optimizer or task. The text ends with a line break. Returns nothing for an unknown word.
std::optional<std::string> glossary_text(std::string_view word);

/// All words with an entry, for suggestions.
std::vector<std::string> glossary_words();

struct GlossaryTerm {
  std::string_view words;  ///< The term and its other names, with "|" between.
  std::string_view text;
};

/// Words of frameworks, machines and papers for what has another name here, and for what is not modeled.
std::span<const GlossaryTerm> field_terms();

/// What a software stack does, fact by fact, and its source. Returns nothing for a word that names no stack.
std::optional<std::string> software_text(std::string_view word);

/// Flags, effect and what each stack has of a feature, for a path such as software.overlap.tensor. Returns nothing for
/// another one.
std::optional<std::string> overlap_text(std::string_view path);

/// Summary and source of every stack.
std::string software_list();

}  // namespace stagecraft
