// Forks the processes of `--processes` on this host and tells them each other's addresses; says how each ended.

#include "backends/real/tcp/local_processes.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "backends/real/clocks.hpp"
#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

real::Socket listener_here;
bool is_copy = false;
std::map<int, pid_t> forked;           // By rank.
std::map<int, std::string> how_ended;  // By rank.

void note_end(int rank, int status) {
  if (WIFSIGNALED(status)) how_ended[rank] = fmt::format("killed by signal {}", WTERMSIG(status));
  if (WIFEXITED(status)) how_ended[rank] = fmt::format("exit code {}", WEXITSTATUS(status));
  forked.erase(rank);
}

void look_for_end(int rank) {
  int status = 0;
  if (const auto it = forked.find(rank); it != forked.end() && waitpid(it->second, &status, WNOHANG) == it->second)
    note_end(rank, status);
}

constexpr double kMoment = 2;  // Seconds.

/// A copy ends with the first process, whatever ends that, and leaves it to say so.
void become_copy(pid_t first) {
  is_copy = true;
  forked.clear();
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != first) _exit(4);
}

}  // namespace

void fork_local_processes(int count) {
  std::vector<real::Socket> listeners;
  std::string hosts;
  for (int rank = 0; rank < count; ++rank) {
    const real::HostPort any{"127.0.0.1", 0};
    listeners.push_back(real::listen_at(real::resolve(any).front(), any, true));
    hosts += fmt::format("{}127.0.0.1:{}", rank > 0 ? "," : "", real::port_of(listeners.back()));
  }
  const pid_t first = getpid();
  int rank = 0;
  for (int copy = 1; copy < count && rank == 0; ++copy) {
    const pid_t pid = fork();
    if (pid < 0) {
      const std::string why = std::strerror(errno);
      real::end_local_processes();
      throw BackendError(fmt::format("process {} of {} cannot be started: {}", copy, count, why));
    }
    if (pid > 0) forked[copy] = pid;
    if (pid == 0) become_copy(first), rank = copy;
  }
  listener_here = std::move(listeners[rank]);
  name_processes(hosts, rank);
}

real::Socket real::take_local_listener() { return std::move(listener_here); }

bool real::is_local_copy() { return is_copy; }

std::string real::end_of_local_process(int rank) {
  const double begin = steady_seconds();
  for (Nap nap; forked.count(rank) != 0 && steady_seconds() - begin < kMoment; nap()) look_for_end(rank);
  const auto ended = how_ended.find(rank);
  return ended == how_ended.end() ? std::string() : ended->second;
}

void real::end_local_processes() {
  const double begin = steady_seconds();
  for (Nap nap; !forked.empty() && steady_seconds() - begin < kMoment; nap())
    for (const auto& [rank, pid] : std::map(forked)) look_for_end(rank);
  for (const auto& [rank, pid] : std::exchange(forked, {})) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

}  // namespace stagecraft
