#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

/// The whole of a file; throws InputError when it cannot be read.
std::string read_file(const std::string& path);
/// Writes to a temporary file in the same folder and renames it, so that a reader never sees half of it.
void write_file(const std::string& path, std::string_view content);

/// For the handler of a signal, in any thread: removes the files that write_file() has begun and not renamed yet.
void remove_half_written() noexcept;
/// Number of files that write_file() has finished.
int files_written() noexcept;

}  // namespace stagecraft
