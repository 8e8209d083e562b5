#pragma once

#include <string>

#include "backends/real/tcp/socket.hpp"

namespace stagecraft::real {

/// The socket at which this process listens, where fork_local_processes() has opened it; else none.
Socket take_local_listener();
/// How a process that this one has forked has ended, such as "killed by signal 9"; empty where that is not known.
std::string end_of_local_process(int rank);
/// Waits a moment for the processes that this one has forked to end, then ends them.
void end_local_processes();

}  // namespace stagecraft::real
