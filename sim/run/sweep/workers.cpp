#include "sim/run/sweep/workers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/run/sweep/line.hpp"

namespace stagecraft {
namespace {

using Wall = std::chrono::steady_clock;
using Work = std::function<std::string(int)>;
constexpr int kTick = 100;  // Milliseconds between two questions whether to stop.
constexpr auto kPatience = std::chrono::seconds(1);
constexpr int kLine = 3;  // File number of a worker's line to its parent.

[[noreturn]] void fail(const char* what) { throw BackendError(fmt::format("{}: {}", what, std::strerror(errno))); }

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
  Line ours(kLine);
  while (const auto job = ours.next())
    if (!ours.send(work(std::stoi(*job)))) break;
  _exit(0);  // Not exit: the parent's buffers and exit handlers are not ours.
}

}  // namespace

class Workers::Worker {
 public:
  explicit Worker(const Work& work) {
    const auto [ours, theirs] = open_line();
    std::fflush(nullptr);  // Or text in a buffer is written twice.
    const pid_t parent = getpid();
    id_ = fork();
    if (id_ == 0) be_worker(theirs, parent, work);
    close(theirs);
    line_ = Line(ours);
    if (id_ < 0) close(ours), fail("fork");
    setpgid(id_, id_);
  }
  ~Worker() {
    if (id_ > 0) end();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  bool busy() const { return job_.has_value(); }
  int job() const { return *job_; }
  int file() const { return line_.file(); }
  double seconds() const { return std::chrono::duration<double>(Wall::now() - begin_).count(); }

  /// One that has died meanwhile shows it when it is listened to.
  void give(int job) {
    job_ = job;
    begin_ = Wall::now();
    line_.send(std::to_string(job));
  }

  bool listen() { return line_.listen(); }  ///< False when it has ended.

  /// The end of its job, when all of it was heard.
  std::optional<JobEnd> take() {
    auto text = line_.take();
    if (!text) return {};
    JobEnd end{job(), JobEnd::How::Done, std::move(*text), seconds()};
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
    close(line_.file());
    if (!WIFSIGNALED(status)) return fmt::format("exit {}", WEXITSTATUS(status));
    return fmt::format("signal {}, {}", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }

 private:
  pid_t id_ = -1;
  Line line_{-1};
  std::optional<int> job_;
  Wall::time_point begin_;
};

Workers::Workers(const WorkerOptions& options, Work work) : options_(options), work_(std::move(work)) {}
Workers::~Workers() = default;

void Workers::give(int job) { waiting_.push_back(job); }

std::vector<JobEnd> Workers::wait(int also) {
  staff();
  std::vector<pollfd> lines{{also, POLLIN, 0}};  // One that is negative is passed over.
  for (const auto& worker : workers_) lines.push_back({worker->file(), POLLIN, 0});
  poll(lines.data(), lines.size(), kTick);
  std::vector<JobEnd> ends;
  for (auto& worker : workers_) serve(worker, ends);
  std::erase(workers_, nullptr);
  return ends;
}

void Workers::staff() {
  for (auto& worker : workers_) give_next(*worker);
  while (!waiting_.empty() && workers_.size() < static_cast<std::size_t>(options_.workers)) {
    workers_.push_back(std::make_unique<Worker>(work_));
    give_next(*workers_.back());
  }
}

void Workers::give_next(Worker& worker) {
  if (worker.busy() || waiting_.empty()) return;
  worker.give(waiting_.front());
  waiting_.pop_front();
}

void Workers::serve(std::unique_ptr<Worker>& worker, std::vector<JobEnd>& ends) {
  const bool alive = worker->listen();
  if (auto end = worker->take()) {
    if (alive) give_next(*worker);  // It works while its last end is seen to.
    ends.push_back(std::move(*end));
  }
  const bool late = alive && worker->busy() && options_.timeout.value > 0 && worker->seconds() > options_.timeout.value;
  if (alive && !late) return;
  if (worker->busy()) {
    JobEnd end{worker->job(), late ? JobEnd::How::TimedOut : JobEnd::How::Crashed, {}, worker->seconds()};
    end.text = late ? worker->end() : worker->how_it_ended();
    ends.push_back(std::move(end));
  }
  worker.reset();
}

bool do_in_workers(std::span<const int> jobs, const WorkerOptions& options, const Work& work,
                   const std::function<void(const JobEnd&)>& done) {
  Workers workers(options, work);
  for (const int job : jobs) workers.give(job);
  for (std::size_t ended = 0; ended < jobs.size();) {
    if (options.stop()) return false;
    const std::vector<JobEnd> ends = workers.wait();
    if (options.stop()) return false;
    ended += ends.size();
    for (const JobEnd& end : ends) done(end);
  }
  return true;
}

}  // namespace stagecraft
