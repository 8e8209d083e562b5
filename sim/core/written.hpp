#pragma once

namespace stagecraft {

/// For a handler of a signal, in any thread: removes the neighbour files that write_file() is at, and how many files it
/// has finished.
void remove_half_written() noexcept;
int files_written() noexcept;

}  // namespace stagecraft
