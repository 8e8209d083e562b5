#pragma once

#include <string>

#include "backends/real/tcp/socket.hpp"

namespace stagecraft::real {

/// The socket at which this process listens, where fork_local_processes() has opened it; else none.
Socket take_local_listener();
/// Whether another process has forked this one. Once they have joined it prints nothing: the first process says what is
/// wrong, and how that one ends is what its user sees.
bool is_local_copy();
/// How a process that this one has forked has ended, such as "killed by signal 9"; empty where that is not known. One
/// that has closed its connections needs a moment to have ended.
std::string end_of_local_process(int rank);
/// Waits a moment for the processes that this one has forked to end, then ends them.
void end_local_processes();

}  // namespace stagecraft::real
