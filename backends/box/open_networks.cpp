// Networks that stay up between commands: a process holds each, and a locked file says how to enter it (`cluster up`,
// `exec`, `list` and `down`).

#include "backends/box/open_networks.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "backends/box/cpu_groups.hpp"
#include "sim/core/diagnostic.hpp"

// A network has a file with what Entrance needs. Its process holds a lock on the file, so the file of a process that
// was killed is known by its lock that is free.

namespace stagecraft::box {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".json";

/// Where the files of this user are. No other user may write there.
fs::path folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  fs::path path = geteuid() == 0 ? fs::path("/run/stagecraft")
                  : runtime      ? fs::path(runtime) / "stagecraft"
                                 : fs::path(fmt::format("/tmp/stagecraft-{}", geteuid()));
  struct stat status {};
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    throw BackendError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  if (lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
      (status.st_mode & 022) != 0)
    throw BackendError(fmt::format("{} belongs to another user", path.string()));
  return path;
}

fs::path file_of(const std::string& name) { return folder() / (name + kEnding); }

std::string read_all(int file) {
  std::string text;
  char piece[4096];
  for (ssize_t n = 0; (n = pread(file, piece, sizeof piece, static_cast<off_t>(text.size()))) > 0;)
    text.append(piece, n);
  return text;
}

/// Whether a process holds the network of this file.
bool is_held(int file) {
  if (flock(file, LOCK_EX | LOCK_NB) != 0) return true;
  flock(file, LOCK_UN);
  return false;
}

/// Removes the groups of a network whose process was killed.
void remove_left_groups(const std::string& text) {
  if (text.empty()) return;
  const std::string groups = read_network(text).entrance.cpu_groups;
  if (!groups.empty()) remove_cpu_groups(groups);
}

/// The processes in the namespaces of a network, without the one that holds it.
std::vector<pid_t> processes_in(const Entrance& entrance) {
  std::set<std::pair<dev_t, ino_t>> spaces;
  struct stat status {};
  for (const int file : entrance.files)
    if (stat(fmt::format("/proc/{}/fd/{}", entrance.holder, file).c_str(), &status) == 0)
      spaces.insert({status.st_dev, status.st_ino});
  std::vector<pid_t> processes;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process <= 0 || process == entrance.holder) continue;
    if (stat((entry.path() / "ns/net").c_str(), &status) == 0 && spaces.contains({status.st_dev, status.st_ino}))
      processes.push_back(process);
  }
  return processes;
}

/// Waits until `done`, at most this long.
template <class Done>
bool wait_for(Seconds patience, Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience.value);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

void write_whole(int file, const std::string& text) {
  if (pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    throw BackendError(fmt::format("the file of the network: {}", std::strerror(errno)));
}

/// The network with groups in which the programs of unlike devices compute, or why there are none.
BuiltNetwork with_cpu_groups(BuiltNetwork opened, const Cluster& cluster, const std::string& name) {
  const std::vector<double> shares = core_shares(cluster, static_cast<int>(std::thread::hardware_concurrency()));
  if (shares.empty()) return opened;
  try {
    opened.entrance.cpu_groups = make_cpu_groups(name, shares);
    opened.core_shares = shares;
  } catch (const BackendError& e) {
    opened.why_alike = e.what();
  }
  return opened;
}

/// The process of the network: it lives until it gets SIGTERM.
[[noreturn]] void keep_open(const Network& network, bool check, const fs::path& path, OpenFile file,
                            MessageSocket& parent) noexcept {
  setsid();
  sigset_t ending;
  sigemptyset(&ending);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&ending, signal);
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  const OpenFile stop(signalfd(-1, &ending, SFD_CLOEXEC));
  std::string groups;
  try {
    hold_network(
        network, check,
        [&](const BuiltNetwork& built) {
          const BuiltNetwork opened = with_cpu_groups(built, network.cluster, path.stem());
          groups = opened.entrance.cpu_groups;
          write_whole(file.number(), to_json(opened));
          // Ctrl-C in the command that waits for the network means that it is not wanted.
          if (!parent.send("+")) throw BackendError("interrupted");
          parent.close();
          const OpenFile nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
          for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing.number(), standard);
          if (chdir("/") != 0) return;
        },
        stop.number());
  } catch (const std::exception& e) {
    parent.send(fmt::format("-{}", e.what()));
  }
  if (!groups.empty()) remove_cpu_groups(groups);
  unlink(path.c_str());
  _exit(0);
}

}  // namespace

std::vector<OpenNetwork> open_networks() {
  std::vector<OpenNetwork> networks;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder())) {
    if (entry.path().extension() != kEnding) continue;
    const OpenFile file(open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (file.number() < 0) continue;
    if (!is_held(file.number())) {
      remove_left_groups(read_all(file.number()));
      unlink(entry.path().c_str());
      continue;
    }
    const std::string text = read_all(file.number());
    if (!text.empty()) networks.push_back({entry.path().stem(), read_network(text)});
  }
  std::sort(networks.begin(), networks.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return networks;
}

OpenNetwork open_network(const std::string& name, const Network& network, bool check) {
  const fs::path path = file_of(name);
  OpenFile file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file.number() < 0) throw BackendError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  if (flock(file.number(), LOCK_EX | LOCK_NB) != 0)
    throw InputError(fmt::format("the network '{}' is up already", name),
                     fmt::format("stagecraft cluster down {0}, or --name for another name", name));
  if (ftruncate(file.number(), 0) != 0) throw BackendError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  auto [here, there] = MessageSocket::connected_pair();
  const pid_t child = fork();
  if (child < 0) throw BackendError(fmt::format("a process: {}", std::strerror(errno)));
  if (child == 0) {
    here.close();
    keep_open(network, check, path, std::move(file), there);
  }
  there.close();
  const std::optional<std::string> answer = here.wait_for_next();
  if (!answer) throw BackendError("the process that builds the network has ended before it was ready");
  if (answer->front() == '-') throw BackendError(answer->substr(1));
  return {name, read_network(read_all(file.number()))};
}

void close_network(const OpenNetwork& network, Seconds patience) {
  const Entrance& entrance = network.opened.entrance;
  for (const int signal : {SIGTERM, SIGKILL}) {
    for (const pid_t process : processes_in(entrance)) kill(process, signal);
    if (wait_for(patience, [&] { return processes_in(entrance).empty(); })) break;
  }
  const OpenFile file(open(file_of(network.name).c_str(), O_RDONLY | O_CLOEXEC));
  kill(entrance.holder, SIGTERM);
  if (file.number() >= 0 && !wait_for(Seconds{10}, [&] { return !is_held(file.number()); }))
    throw BackendError(fmt::format("process {} of the network '{}' does not end", entrance.holder, network.name));
}

}  // namespace stagecraft::box
