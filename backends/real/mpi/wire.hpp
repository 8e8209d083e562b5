#pragma once

#include <mpi.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

namespace stagecraft::real {

/// The world once for each kind of talk, so that none takes the messages of another.
struct Wires {
  MPI_Comm words = MPI_COMM_NULL, messages = MPI_COMM_NULL, shares = MPI_COMM_NULL, groups = MPI_COMM_NULL,
           pulses = MPI_COMM_NULL, decisions = MPI_COMM_NULL;
};
Wires open_wires();
const Wires& wires();  ///< The communicators of the joined world.

/// Held for each call of MPI while a run has threads.
std::mutex& mpi_calls();

/// BackendError in the words of MPI, unless it says that all is well.
void check(int result);

/// BackendError where MPI cannot tell that many messages apart.
void require_tags(std::size_t count, const char* what);

using Deadline = std::optional<std::chrono::steady_clock::time_point>;
/// Without keeping a core from others; false when the deadline has passed.
bool wait(MPI_Request&, const Deadline& = {});

/// Texts of any length; of two from the same process the first is received first.
bool send_text(int to, const std::string&, const Deadline& = {});
std::optional<std::string> receive_text(int from, const Deadline& = {});

}  // namespace stagecraft::real
