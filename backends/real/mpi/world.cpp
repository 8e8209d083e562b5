#include "backends/world.hpp"

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "backends/real/mpi/meeting.hpp"
#include "backends/real/mpi/stop_signal.hpp"
#include "backends/real/mpi/transport.hpp"
#include "backends/real/mpi/wire.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

constexpr std::chrono::seconds kLastGoodbye{2};

World together;
real::Wires open;

}  // namespace

World world() { return together; }
const real::Wires& real::wires() { return open; }

void join_world() {
  if (launched().size == 1 || together.size > 1) return;
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);  // An MPI that knows GPUs may start their driver, which reads it.
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  if (level < MPI_THREAD_SERIALIZED) throw BackendError("this MPI can not be used by a program with threads");
  World all;
  MPI_Comm_rank(MPI_COMM_WORLD, &all.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &all.size);
  if (all.size != launched().size)
    throw BackendError(
        fmt::format("{} processes were started, but MPI joins {} of them: the launcher is of another MPI "
                    "than this was built with ({})",
                    launched().size, all.size, mpi_version()));
  if (all.size > 1) open = real::open_wires();
  together = all;
}

Ending settle(const Ending& own) {
  if (together.size == 1) return launched().rank == 0 ? own : Ending{};
  const auto standing = real::standing();
  if (real::told_to_stop() || standing == real::Standing::Parted || standing == real::Standing::Bereft) return own;
  return real::meet(own);
}

/// After a failure the first gets the time to print before mpirun sees anybody end. Messages that nobody will take are
/// then left, with which a process may not part from MPI in peace.
void leave_world(int code) {
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (!initialised || real::told_to_stop()) return;
  if (real::standing() == real::Standing::Unheard || real::standing() == real::Standing::Bereft)
    MPI_Abort(MPI_COMM_WORLD, code);
  if (real::standing() == real::Standing::Failed) {
    MPI_Request request;
    MPI_Ibarrier(real::wires().words, &request);
    real::wait(request, std::chrono::steady_clock::now() + kLastGoodbye);
    if (real::messages_left()) MPI_Abort(MPI_COMM_WORLD, code);
  }
  MPI_Finalize();
}

/// "Open MPI v4.1.4, package: ..." up to the first comma.
std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return {text, std::strcspn(text, ",\n")};
}

}  // namespace stagecraft
