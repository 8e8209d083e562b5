#pragma once

#include <span>
#include <string_view>

namespace stagecraft {

struct GlossaryTerm {
  std::string_view words;  ///< The term and its other names, with "|" between.
  std::string_view text;
};

/// Words of frameworks, machines and papers for what has another name here, and for what is not modeled.
std::span<const GlossaryTerm> field_terms();

}  // namespace stagecraft
