#include "backends/world.hpp"

#include <fmt/core.h>

#include "backends/real/multi_process_run.hpp"
#include "backends/real/remote_members.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft {

World world() { return {}; }

void join_world(const std::string&) {
  if (const int size = launched().size; size > 1)
    throw BackendError(fmt::format(
        "{} processes were started, but this is built without MPI: install libopenmpi-dev and configure again", size));
}

Ending finish_all(const Ending& ending) { return launched().rank == 0 ? ending : Ending{}; }
void leave_world(int) {}
void barrier() {}
void send_message(int, std::string) { throw InternalError("several processes without MPI"); }
std::optional<Word> receive_message() { return {}; }
void part(bool) {}
std::string mpi_version() { return {}; }

real::CollectedRun real::run_together(const Program&, const DevicePlacement&, double, const std::function<Times()>&,
                                      const std::function<std::string()>&) {
  throw InternalError("several processes without MPI");
}

std::unique_ptr<real::RemoteMembers> real::remote_members(int, std::vector<int>) {
  throw InternalError("several processes without MPI");
}

std::vector<std::string> real::exchange(const std::string&) { throw InternalError("several processes without MPI"); }

struct real::ProcessGroup::Hidden {};
real::ProcessGroup::ProcessGroup() = default;
real::ProcessGroup::~ProcessGroup() = default;
std::optional<real::Transport::Pulse> real::ProcessGroup::pulse(const Transport::Pulse&) { return {}; }
bool real::ProcessGroup::stop_requested_by_launcher() const { return false; }
std::optional<std::uint64_t> real::ProcessGroup::common_bits(std::uint64_t) { return {}; }

real::CollectedRun real::run_program_together(const Program&, const DevicePlacement&, Actions&, RemoteBuffers&,
                                              const ExecutorOptions&, const std::function<std::string()>&) {
  throw InternalError("several processes without MPI");
}

}  // namespace stagecraft
