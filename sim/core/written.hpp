#pragma once

namespace stagecraft {

/// For a handler of a signal: the neighbour file that write_file() is at, if any, and how many files it has finished.
const char* half_written() noexcept;
int files_written() noexcept;

}  // namespace stagecraft
