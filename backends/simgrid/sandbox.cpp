#include "backends/simgrid/sandbox.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
#include <string>
#include <string_view>
#include <utility>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

// SimGrid aborts on its own errors, has one clock for a process and is not safe among threads: each run has a child.

namespace stagecraft::sg {
namespace {

enum class Outcome : std::uint8_t { Died, Done, Input, Impossible, Bug, Failed };

/// How `work` ended, told through shared memory.
struct Verdict {
  Outcome outcome;  // Died until the child says otherwise
  std::array<char, 64> code;
  std::array<char, 4096> message, help;
};

template <std::size_t size>
void put(std::array<char, size>& place, std::string_view text) {
  text = text.substr(0, size - 1);
  std::memcpy(place.data(), text.data(), text.size());
}

void put_problems(Verdict& verdict, const InputError& error) {
  std::string message, help;
  for (const Diagnostic& problem : error.problems()) {
    if (!message.empty()) message += "; ";
    message += problem.path.empty() ? problem.message : problem.path + ": " + problem.message;
    if (help.empty()) help = problem.help;
  }
  put(verdict.message, message);
  put(verdict.help, help);
}

void judge(const std::function<void()>& work, Verdict& verdict) {
  try {
    work();
    verdict.outcome = Outcome::Done;
  } catch (const InputError& error) {
    put_problems(verdict, error);
    verdict.outcome = Outcome::Input;
  } catch (const Infeasible& error) {
    put(verdict.code, error.code());
    put(verdict.message, error.what());
    verdict.outcome = Outcome::Impossible;
  } catch (const InternalError& error) {
    put(verdict.message, error.what());
    verdict.outcome = Outcome::Bug;
  } catch (const std::exception& error) {
    put(verdict.message, error.what());
    verdict.outcome = Outcome::Failed;
  } catch (...) {
    put(verdict.message, "an exception that is none of the standard library's");
    verdict.outcome = Outcome::Failed;
  }
}

[[noreturn]] void be_child(const std::function<void()>& work, Verdict& verdict, int error_pipe, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before it could be asked for
  const rlimit no_core_files{0, 0};
  setrlimit(RLIMIT_CORE, &no_core_files);
  for (const int signal : {SIGINT, SIGTERM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, SIG_DFL);
  dup2(error_pipe, STDERR_FILENO);
  judge(work, verdict);
  _exit(0);  // not exit: the parent's buffers and exit handlers are not ours
}

/// A child that is not left behind, whatever happens to the parent's code.
class Child {
 public:
  explicit Child(pid_t id) : id_(id), end_(static_cast<int>(syscall(SYS_pidfd_open, id, 0))) {}
  ~Child() {
    if (end_ >= 0) close(end_);
    if (ended_) return;
    stop();
    while (waitpid(id_, &status_, 0) < 0 && errno == EINTR) {
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void stop() { kill(id_, SIGKILL); }
  int end() const { return end_; }  ///< Can be read once it has ended; -1 where the kernel has no such thing.
  bool has_ended() {
    if (ended_) return true;
    const pid_t got = waitpid(id_, &status_, WNOHANG);
    return ended_ = got == id_ || (got < 0 && errno == ECHILD);  // ECHILD: this process ignores SIGCHLD
  }
  std::string how() const {
    if (WIFSIGNALED(status_)) return fmt::format("signal {}", strsignal(WTERMSIG(status_)));
    return fmt::format("exit {}", WEXITSTATUS(status_));
  }

 private:
  pid_t id_;
  int end_;
  int status_ = 0;
  bool ended_ = false;
};

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw BackendError(fmt::format("pipe: {}", std::strerror(errno)));
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    close(ends_[0]);
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_writer() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  /// Takes what is there; false at the end.
  bool drain(std::string& text) const {
    std::array<char, 4096> buffer;
    for (;;) {
      const ssize_t got = read(ends_[0], buffer.data(), buffer.size());
      if (got == 0) return false;
      if (got < 0) return true;
      if (text.size() < kMost) text.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

 private:
  static constexpr std::size_t kMost = 1 << 16;
  std::array<int, 2> ends_{-1, -1};
};

/// False when the time ran out. Looks at the child itself too, because a pipe stays open in other children.
bool wait_for(Child& child, const Pipe& errors, std::string& text, Seconds timeout) {
  using Wall = std::chrono::steady_clock;
  const auto begin = Wall::now();
  bool open = true;
  while (!child.has_ended()) {
    if (timeout.value > 0 && std::chrono::duration<double>(Wall::now() - begin).count() > timeout.value) return false;
    std::array<pollfd, 2> wait{{{open ? errors.reader() : -1, POLLIN, 0}, {child.end(), POLLIN, 0}}};
    poll(wait.data(), wait.size(), open || child.end() >= 0 ? 20 : 1);
    open = open && errors.drain(text);
  }
  if (open) errors.drain(text);
  return true;
}

/// What SimGrid calls critical, else the start of whatever the child said.
std::string last_words(const std::string& text) {
  constexpr std::string_view mark = "CRITICAL]";
  std::string_view words = text;
  if (const auto at = words.find(mark); at != std::string_view::npos) {
    words.remove_prefix(at + mark.size());
    words = words.substr(0, words.find('\n'));
  }
  return std::string(trim(words.substr(0, 500)));
}

void rethrow(const Verdict& verdict) {
  const std::string message = verdict.message.data();
  switch (verdict.outcome) {
    case Outcome::Input:
      throw InputError(message, verdict.help.data());
    case Outcome::Impossible:
      throw Infeasible(verdict.code.data(), message);
    case Outcome::Bug:
      throw InternalError(message);
    case Outcome::Failed:
      throw BackendError("simgrid: " + message);
    case Outcome::Died:
    case Outcome::Done:
      return;
  }
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(bytes) {
  address_ = mmap(nullptr, bytes == 0 ? 1 : bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (address_ == MAP_FAILED)
    throw BackendError(fmt::format("no shared memory of {} for results: {}", to_text(Bytes{static_cast<double>(bytes)}),
                                   std::strerror(errno)));
}

SharedMemory::~SharedMemory() { munmap(address_, bytes_ == 0 ? 1 : bytes_); }

void run_in_child(const std::function<void()>& work, Seconds timeout) {
  const SharedMemory memory(sizeof(Verdict));
  Verdict& verdict = memory.as<Verdict>().front();
  Pipe errors;
  std::fflush(nullptr);  // or text in a buffer is written twice
  const pid_t parent = getpid();
  const pid_t id = fork();
  if (id < 0) throw BackendError(fmt::format("fork: {}", std::strerror(errno)));
  if (id == 0) be_child(work, verdict, errors.writer(), parent);
  Child child(id);
  errors.close_writer();
  std::string text;
  if (!wait_for(child, errors, text, timeout))
    throw BackendError("simgrid: stopped after " + to_text(timeout) + " of wall time, as asked");
  rethrow(verdict);
  if (verdict.outcome == Outcome::Done) return;
  const std::string words = last_words(text);
  throw BackendError("simgrid: the library failed (" + child.how() + ")" + (words.empty() ? "" : ": " + words));
}

}  // namespace stagecraft::sg
