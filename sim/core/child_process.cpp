// Forks a child that runs a function, exchanges messages with it over a socket, and says how it ended.

#include "sim/core/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/stop_point.hpp"

namespace stagecraft {
namespace {

using Wall = std::chrono::steady_clock;

constexpr std::size_t kMostErrors = 1 << 16;

[[noreturn]] void fail(const char* call) { throw BackendError(fmt::format("{}: {}", call, std::strerror(errno))); }

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

double seconds_since(Wall::time_point begin) { return std::chrono::duration<double>(Wall::now() - begin).count(); }

/// Another child's socket that stayed open here would hide the parent's death from that child, and a database must not
/// be open in two processes. Returns the number that the socket has afterwards.
int keep_only(int socket, int errors) {
  constexpr int kKept = STDERR_FILENO + 1;
  const int safe = fcntl(socket, F_DUPFD, kKept + 1), nothing = open("/dev/null", O_RDWR);
  if (safe < 0 || nothing < 0) _exit(1);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(errors >= 0 ? errors : nothing, STDERR_FILENO);
  dup2(safe, kKept);
  close_range(kKept + 1, ~0U, 0);
  return kKept;
}

/// No exception leaves this function: it would unwind the stack of the parent's program.
[[noreturn]] void run_child(const ChildOptions& options, const std::function<void(MessageSocket&)>& work, pid_t parent,
                            int socket, int errors) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // The parent died before the call above.
  if (options.own_group) setpgid(0, 0);
  const rlimit no_core_files{0, 0};
  setrlimit(RLIMIT_CORE, &no_core_files);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    std::signal(signal, SIG_DFL);
  if (options.without_files)
    socket = keep_only(socket, errors);
  else if (errors >= 0)
    dup2(errors, STDERR_FILENO);
  MessageSocket to_parent{OpenFile(socket)};
  work(to_parent);
  _exit(0);  // exit() would write the parent's buffers and call its exit handlers.
}

}  // namespace

std::pair<MessageSocket, MessageSocket> MessageSocket::connected_pair() {
  std::array<int, 2> ends{-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) fail("socketpair");
  return {MessageSocket(OpenFile(ends[0])), MessageSocket(OpenFile(ends[1]))};
}

bool MessageSocket::send(std::string_view message) {
  const std::uint64_t size = message.size();
  return send_all(reinterpret_cast<const char*>(&size), sizeof size) && send_all(message.data(), size);
}

bool MessageSocket::send_all(const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(file(), data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      data += sent;
      size -= sent;
    } else if (sent < 0 && would_block()) {  // The other end may wait until we read.
      pollfd ready{file(), POLLIN | POLLOUT, 0};
      poll(&ready, 1, -1);
      if ((ready.revents & POLLIN) != 0 && !receive()) return false;
    } else if (sent == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool MessageSocket::read(bool wait) {
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const ssize_t size = recv(file(), buffer.data(), buffer.size(), wait ? 0 : MSG_DONTWAIT);
    if (size > 0) received_.append(buffer.data(), size);
    if (size > 0 && wait) return true;
    if (size == 0 || (size < 0 && errno != EINTR)) return size < 0 && would_block();
  }
}

bool MessageSocket::receive() { return read(false); }

std::optional<std::string> MessageSocket::take() {
  std::uint64_t size = 0;
  if (received_.size() < sizeof size) return {};
  std::memcpy(&size, received_.data(), sizeof size);
  if (received_.size() - sizeof size < size) return {};
  std::string message = received_.substr(sizeof size, size);
  received_.erase(0, sizeof size + size);
  return message;
}

std::optional<std::string> MessageSocket::wait_for_next() {
  for (;;) {
    if (auto message = take()) return message;
    if (!read(true)) return {};
  }
}

std::string to_text(const ProcessEnd& end) {
  if (end.signal == 0) return fmt::format("exit {}", end.exit_code);
  return fmt::format("signal {}, {}", end.signal, strsignal(end.signal));
}

ChildProcess::ChildProcess(const ChildOptions& options, const std::function<void(MessageSocket&)>& work)
    : own_group_(options.own_group) {
  auto [ours, theirs] = MessageSocket::connected_pair();
  OpenFile errors_in_child;
  if (options.capture_errors) {
    std::array<int, 2> ends{-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
    error_file_ = OpenFile(ends[0]);
    errors_in_child = OpenFile(ends[1]);
    fcntl(error_file_.number(), F_SETFL, O_NONBLOCK);
  }
  std::fflush(nullptr);  // The child would write text in a buffer a second time.
  const pid_t parent = getpid();
  id_ = fork();
  if (id_ < 0) fail("fork");
  if (id_ == 0) {
    ours.close();
    run_child(options, work, parent, theirs.file(), errors_in_child.number());
  }
  if (own_group_) setpgid(id_, id_);  // Both processes do this, because either may be the first.
  socket_ = std::move(ours);
}

ChildProcess::~ChildProcess() { kill(); }

bool ChildProcess::has_ended() {
  if (reaped_) return true;
  const pid_t ended = waitpid(id_, &status_, WNOHANG);
  return reaped_ = ended == id_ || (ended < 0 && errno == ECHILD);  // ECHILD: this process ignores SIGCHLD.
}

bool ChildProcess::read_errors() {
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t size = ::read(error_file_.number(), buffer.data(), buffer.size());
    if (size <= 0) return size < 0 && error_file_.number() >= 0;
    if (errors_.size() < kMostErrors) errors_.append(buffer.data(), size);
  }
}

bool ChildProcess::wait(Seconds timeout) {
  const auto begin = Wall::now();
  // Looks at the child itself too, because other children may keep its socket and its stderr open.
  const OpenFile end(static_cast<int>(syscall(SYS_pidfd_open, id_, 0)));
  bool connected = true, writes_errors = error_file_.number() >= 0;
  while (!has_ended()) {
    stop_point();
    if (timeout.value > 0 && seconds_since(begin) > timeout.value) return false;
    std::array<pollfd, 3> files{{{connected ? socket_.file() : -1, POLLIN, 0},
                                 {writes_errors ? error_file_.number() : -1, POLLIN, 0},
                                 {end.number(), POLLIN, 0}}};
    poll(files.data(), files.size(), connected || writes_errors || end.number() >= 0 ? 20 : 1);
    connected = connected && socket_.receive();
    writes_errors = writes_errors && read_errors();
  }
  if (connected) socket_.receive();
  if (writes_errors) read_errors();
  return true;
}

ProcessEnd ChildProcess::kill(Seconds patience) {
  if (!reaped_) {
    siginfo_t info{};
    const auto begin = Wall::now();
    while (patience.value > 0 && seconds_since(begin) < patience.value &&
           waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid == 0)
      poll(nullptr, 0, 1);
    if (own_group_) ::kill(-id_, SIGKILL);
    ::kill(id_, SIGKILL);
    while (waitpid(id_, &status_, 0) < 0 && errno == EINTR) {
    }
    reaped_ = true;
  }
  if (WIFSIGNALED(status_)) return {.exit_code = 0, .signal = WTERMSIG(status_)};
  return {.exit_code = WEXITSTATUS(status_), .signal = 0};
}

}  // namespace stagecraft
