#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

/// The SHA-256 of a text in hexadecimal (FIPS 180-4).
std::string sha256(std::string_view text);
/// Computes it without the SHA instructions of the processor.
std::string portable_sha256(std::string_view text);

}  // namespace stagecraft
