#pragma once

#include <exception>
#include <string>

namespace stagecraft {

/// The processes that a launcher such as mpirun has started together, and which of them this is.
struct World {
  int rank = 0, size = 1;
};

World launched();  ///< As the launcher's environment says; alone when there was none.
World world();     ///< Those that work together since join_world(); alone before.

/// From here on all that were launched do the same work, up to settle(). Nothing happens to a process that is alone.
/// BackendError without MPI.
void join_world();

/// How a process ended: its exit code, and what it has to say about it.
struct Ending {
  int code = 0;
  std::string text;
};

/// What this process is to print and return, after hearing how the others ended: all fail when one does, and the first
/// of them says why. Of processes that never joined only the first has anything to say.
Ending settle(const Ending& own);
/// Behind everything that settle() said to print; may not return after a failure.
void leave_world(int code);

std::string mpi_version();  ///< Empty when this is built without MPI.

/// Thrown where there is nothing to add: another process has failed and says why.
class FailedElsewhere : public std::exception {
 public:
  const char* what() const noexcept override { return "another process has failed"; }
};

}  // namespace stagecraft
