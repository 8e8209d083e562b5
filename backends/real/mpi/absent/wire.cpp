// Refuses processes that a launcher of MPI started, in a build without MPI, and says what to install.

#include <fmt/core.h>

#include "backends/real/processes/wire.hpp"
#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft {

std::unique_ptr<real::Wire> real::open_mpi_wire() {
  throw BackendError(
      fmt::format("{} processes were started, but this is built without MPI: install libopenmpi-dev and configure "
                  "again, or name the processes with --hosts",
                  launched().size));
}

std::string mpi_version() { return {}; }

}  // namespace stagecraft
