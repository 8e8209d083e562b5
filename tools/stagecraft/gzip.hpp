#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

/// InputError in a build without zlib.
void check_gzip();

/// The text as a file of gzip.
std::string gzip(std::string_view text);

}  // namespace stagecraft
