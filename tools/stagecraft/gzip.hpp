#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

/// Whether this build has zlib.
bool has_gzip();
/// InputError in a build without zlib.
void check_gzip();

/// Whether the bytes begin with the mark of a gzip file.
bool is_gzip(std::string_view bytes);

/// What a file of gzip has inside. InputError where it is damaged or has more than 4 GiB, and in a build without zlib,
/// with the command that unpacks it.
std::string gunzip(std::string_view bytes, const std::string& file);

/// The text as a file of gzip.
std::string gzip(std::string_view text);

}  // namespace stagecraft
