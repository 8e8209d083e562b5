#include "backends/world.hpp"

#include <fmt/format.h>

#include "backends/real/together.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft {

World world() { return {}; }

void join_world() {
  if (const int size = launched().size; size > 1)
    throw BackendError(fmt::format(
        "{} processes were started, but this is built without MPI: install libopenmpi-dev and configure again", size));
}

Ending settle(const Ending& own) { return launched().rank == 0 ? own : Ending{}; }
void leave_world(int) {}
void agree() {}
void tell(int, std::string) { throw InternalError("several processes without MPI"); }
std::optional<Word> hear() { return {}; }
void part(bool) {}
std::string mpi_version() { return {}; }

real::Joint real::run_together(const Program&, const Dealing&, const std::function<Times()>&,
                               const std::function<std::string()>&) {
  throw InternalError("several processes without MPI");
}

std::vector<std::string> real::exchange(const std::string&) { throw InternalError("several processes without MPI"); }

struct real::Company::Hidden {};
real::Company::Company() = default;
real::Company::~Company() = default;
std::optional<real::Transport::Pulse> real::Company::pulse(const Transport::Pulse&) { return {}; }
bool real::Company::told_to_stop() const { return false; }

real::Joint real::walk_together(const Program&, const Dealing&, Actions&, Parcels&, const WalkOptions&,
                                const std::function<std::string()>&) {
  throw InternalError("several processes without MPI");
}

}  // namespace stagecraft
