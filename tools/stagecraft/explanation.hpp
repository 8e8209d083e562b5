#pragma once

#include <string>

namespace stagecraft {

/// What `stagecraft explain` says about a field by its dotted path, a term, an operation or a name. The text ends with
/// a line break. InputError with a suggestion for an unknown word.
std::string explanation(const std::string& path);

}  // namespace stagecraft
