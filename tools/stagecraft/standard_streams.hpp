#pragma once

#include <string_view>

namespace stagecraft {

/// Opens stdin, stdout and stderr where they are closed, so that no other file gets their number: nothing can be
/// read from stdin, nothing can be written to stdout, and what goes to stderr is lost.
void open_standard_streams();

/// Writes to stderr. What cannot be written, because stderr is closed or its disk is full, is lost: the command goes
/// on.
void write_error(std::string_view text) noexcept;

}  // namespace stagecraft
