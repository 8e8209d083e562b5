// The processes that were started together, over MPI or TCP: how they join and end, and the messages of job farms
// (`sweep`, `search`).
#include "backends/world.hpp"

#include <fmt/core.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "backends/real/processes/meeting.hpp"
#include "backends/real/processes/wire.hpp"
#include "backends/real/tcp/local_processes.hpp"
#include "backends/real/tcp/socket.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/from_chars.hpp"

namespace stagecraft {
namespace {

/// Variables in which launchers say who a process is: Open MPI; MPICH and Intel MPI; Slurm with PMIx; MVAPICH.
constexpr const char* kLaunchers[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                         {"PMI_RANK", "PMI_SIZE"},
                                         {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
                                         {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"}};

constexpr const char *kHostList = "STAGECRAFT_HOSTS", *kRank = "STAGECRAFT_RANK",
                     *kBegins = "STAGECRAFT_NETWORK_BEGINS";

int number(const char* variable) {
  const char* const text = std::getenv(variable);
  int value = -1;
  if (text) from_chars(text, text + std::strlen(text), value);
  return value;
}

/// Null until the processes join. It is never destroyed: what is under way may keep its memory until the end.
real::Wire* joined_wire = nullptr;

}  // namespace

World launched() {
  if (are_processes_named()) {
    const std::string hosts = std::getenv(kHostList);
    const World world{number(kRank), static_cast<int>(std::count(hosts.begin(), hosts.end(), ',')) + 1};
    return world.rank >= 0 && world.rank < world.size ? world : World{};
  }
  for (const auto& [rank, size] : kLaunchers) {
    const World world{number(rank), number(size)};
    if (world.rank >= 0 && world.size > world.rank) return world;
  }
  return {};
}

bool are_processes_named() {
  const char* const hosts = std::getenv(kHostList);
  return hosts != nullptr && *hosts != '\0';
}

void name_processes(const std::string& hosts, int rank) {
  const auto count = std::ssize(real::hosts_from(hosts));
  if (rank < 0 || rank >= count)
    throw InputError(
        fmt::format("there is no process {} of {}", rank, count),
        fmt::format("--rank takes a number from 0 to {}, the place of this process in --hosts", count - 1));
  setenv(kHostList, hosts.c_str(), 1);
  setenv(kRank, std::to_string(rank).c_str(), 1);
}

void check_named_processes() {
  if (!are_processes_named()) return;
  if (std::getenv(kRank) == nullptr)
    throw InputError("STAGECRAFT_HOSTS names the processes, but STAGECRAFT_RANK does not say which of them this is");
  name_processes(std::getenv(kHostList), number(kRank));
}

bool network_follows_run() { return number(kBegins) >= 0; }

void tell_network() {
  const std::uint64_t one = 1;  // What an eventfd takes.
  if (network_follows_run() && write(number(kBegins), &one, sizeof one) < 0)
    throw BackendError(fmt::format("the network cannot be told that the run begins: {}", std::strerror(errno)));
}

World world() { return joined_wire ? joined_wire->world() : World{}; }

real::Wire& real::wire() {
  STAGECRAFT_CHECK(joined_wire);
  return *joined_wire;
}

void join_world(const std::string& build) {
  if (launched().size == 1 || world().size > 1) return;
  std::unique_ptr<real::Wire> wire = are_processes_named() ? real::open_tcp_wire() : real::open_mpi_wire();
  if (wire->world().size == 1) return;
  joined_wire = wire.release();
  real::require_same_build(build);
}

Ending finish_all(const Ending& ending) {
  // Processes that users start may each fail in its own way before they join.
  if (world().size == 1) return launched().rank == 0 || are_processes_named() ? ending : Ending{};
  const auto state = real::world_state();
  if (real::stop_requested_by_launcher() || state == real::WorldState::Separated ||
      state == real::WorldState::SeparatedWithLoss)
    return ending;
  const Ending gathered = real::gather_endings(ending, real::patience_for_equals());
  return {gathered.code, real::is_local_copy() ? std::string() : gathered.text};
}

void leave_world(int code) {
  real::forget_last_words();
  if (joined_wire && !real::stop_requested_by_launcher()) joined_wire->leave(code);
  real::end_local_processes();
}

void barrier() {
  if (world().size > 1) real::barrier(real::patience_for_equals());
}

void send_message(int rank, std::string text) { real::wire().post(rank, real::WordKind::Message, std::move(text)); }

std::optional<Word> receive_message() {
  for (int r = 0; r < world().size; ++r)
    if (r != world().rank)
      if (auto text = real::wire().take(r, real::WordKind::Message)) return Word{r, std::move(*text)};
  return {};
}

void end_separately(bool all_present) {
  constexpr real::Patience kPatience{10};
  real::set_separated(all_present &&
                      real::wait_for([] { return real::wire().all_left(); }, real::deadline_after(kPatience)));
}

}  // namespace stagecraft
