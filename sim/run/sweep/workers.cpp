#include "sim/run/sweep/workers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

using Wall = std::chrono::steady_clock;
using Work = std::function<std::string(int)>;
constexpr int kTick = 100;  // Milliseconds between two questions whether to stop.
constexpr auto kPatience = std::chrono::seconds(1);
constexpr int kLine = 3;  // File number of a worker's line to its parent.

[[noreturn]] void fail(const char* what) { throw BackendError(fmt::format("{}: {}", what, std::strerror(errno))); }

bool send_all(int line, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t put = send(line, data, size, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    data += put;
    size -= static_cast<std::size_t>(put);
  }
  return true;
}

bool receive_all(int line, char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t got = recv(line, data, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    data += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

/// The life of a worker. It keeps no file of the parent's but its line: another worker's line that stayed open here
/// would hide the parent's death from it, and a database must not be open in two processes.
/// No exception leaves it: on its way out it would end the other workers, as if this were their parent.
[[noreturn]] void be_worker(int line, pid_t parent, const Work& work) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // It died before it could be asked for.
  setpgid(0, 0);                      // Ctrl-C is for the parent.
  const rlimit no_core_files{0, 0};
  setrlimit(RLIMIT_CORE, &no_core_files);
  for (const int signal : {SIGINT, SIGTERM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, SIG_DFL);
  const int safe = fcntl(line, F_DUPFD, kLine + 1), nothing = open("/dev/null", O_RDWR);
  if (safe < 0 || nothing < 0) _exit(1);
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, file);
  dup2(safe, kLine);
  close_range(kLine + 1, ~0U, 0);
  for (std::int32_t job = 0; receive_all(kLine, reinterpret_cast<char*>(&job), sizeof job);) {
    const std::string text = work(job);
    const std::uint64_t size = text.size();
    if (!send_all(kLine, reinterpret_cast<const char*>(&size), sizeof size)) break;
    if (!send_all(kLine, text.data(), text.size())) break;
  }
  _exit(0);  // Not exit: the parent's buffers and exit handlers are not ours.
}

class Worker {
 public:
  explicit Worker(const Work& work) {
    std::array<int, 2> line{-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line.data()) != 0) fail("socketpair");
    std::fflush(nullptr);  // Or text in a buffer is written twice.
    const pid_t parent = getpid();
    id_ = fork();
    if (id_ == 0) be_worker(line[1], parent, work);
    close(line[1]);
    line_ = line[0];
    if (id_ < 0) close(line_), fail("fork");
    setpgid(id_, id_);
  }
  ~Worker() {
    if (id_ > 0) end();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  bool busy() const { return job_.has_value(); }
  int job() const { return *job_; }
  int line() const { return line_; }
  double seconds() const { return std::chrono::duration<double>(Wall::now() - begin_).count(); }

  /// One that has died meanwhile shows it when it is listened to.
  void give(int job) {
    job_ = job;
    begin_ = Wall::now();
    const std::int32_t number = job;
    send_all(line_, reinterpret_cast<const char*>(&number), sizeof number);
  }

  /// Takes what it has said. False when it has ended.
  bool listen() {
    std::array<char, 1 << 16> buffer;
    for (;;) {
      const ssize_t got = recv(line_, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got > 0) heard_.append(buffer.data(), static_cast<std::size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR)) return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
  }

  /// The end of its job, when all of it was heard.
  std::optional<JobEnd> take() {
    std::uint64_t size = 0;
    if (heard_.size() < sizeof size) return {};
    std::memcpy(&size, heard_.data(), sizeof size);
    if (heard_.size() < sizeof size + size) return {};
    JobEnd end{job(), JobEnd::How::Done, heard_.substr(sizeof size, size), seconds()};
    heard_.erase(0, sizeof size + size);
    job_.reset();
    return end;
  }

  /// Of one that is ending by itself: a signal now would take the place of its reason, so that is waited for first.
  std::string how_it_ended() {
    siginfo_t info{};
    const auto patience = Wall::now() + kPatience;
    while (waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid == 0 &&
           Wall::now() < patience)
      poll(nullptr, 0, 1);
    return end();
  }

  /// Ends it and all that it started.
  std::string end() {
    kill(-id_, SIGKILL);
    kill(id_, SIGKILL);
    int status = 0;
    while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
    close(line_);
    if (!WIFSIGNALED(status)) return fmt::format("exit {}", WEXITSTATUS(status));
    return fmt::format("signal {}, {}", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }

 private:
  pid_t id_ = -1;
  int line_ = -1;
  std::optional<int> job_;
  Wall::time_point begin_;
  std::string heard_;
};

class Pool {
 public:
  Pool(std::span<const int> jobs, const WorkerOptions& options, const Work& work,
       const std::function<void(const JobEnd&)>& done)
      : jobs_(jobs), options_(options), work_(work), done_(done) {}

  bool run() {
    for (ended_ = 0; ended_ < jobs_.size();) {
      if (options_.stop()) return false;
      staff();
      wait();
      if (options_.stop()) return false;
      for (auto& worker : workers_) serve(worker);
      std::erase(workers_, nullptr);
    }
    return true;
  }

 private:
  void staff() {
    const std::size_t wanted = std::min(static_cast<std::size_t>(options_.workers), jobs_.size() - ended_);
    while (workers_.size() < wanted) workers_.push_back(std::make_unique<Worker>(work_));
    for (auto& worker : workers_) give_next(*worker);
  }

  void give_next(Worker& worker) {
    if (!worker.busy() && next_ < jobs_.size()) worker.give(jobs_[next_++]);
  }

  void wait() {
    std::vector<pollfd> lines;
    for (const auto& worker : workers_) lines.push_back({worker->line(), POLLIN, 0});
    poll(lines.data(), lines.size(), kTick);
  }

  void serve(std::unique_ptr<Worker>& worker) {
    const bool alive = worker->listen();
    if (const auto end = worker->take()) {
      if (alive) give_next(*worker);  // It works while its last end is seen to.
      tell(*end);
    }
    const bool late =
        alive && worker->busy() && options_.timeout.value > 0 && worker->seconds() > options_.timeout.value;
    if (alive && !late) return;
    if (worker->busy()) {
      JobEnd end{worker->job(), late ? JobEnd::How::TimedOut : JobEnd::How::Crashed, {}, worker->seconds()};
      end.text = late ? worker->end() : worker->how_it_ended();
      tell(end);
    }
    worker.reset();
  }

  void tell(const JobEnd& end) {
    ++ended_;
    done_(end);
  }

  std::span<const int> jobs_;
  const WorkerOptions& options_;
  const Work& work_;
  const std::function<void(const JobEnd&)>& done_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t next_ = 0, ended_ = 0;
};

}  // namespace

bool do_in_workers(std::span<const int> jobs, const WorkerOptions& options, const std::function<std::string(int)>& work,
                   const std::function<void(const JobEnd&)>& done) {
  return Pool(jobs, options, work, done).run();
}

}  // namespace stagecraft
