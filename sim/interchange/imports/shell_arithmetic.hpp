#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stagecraft {

/// The value of a shell's arithmetic of whole numbers, whose variables are replaced: + - * / %, signs and parentheses.
/// Nothing where it has anything else, or a number beyond 10^15.
std::optional<std::int64_t> shell_arithmetic(std::string_view text);

}  // namespace stagecraft
