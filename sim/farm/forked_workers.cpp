// Workers of a JobFarm that are forked processes, so that a job that crashes or hangs ends its worker alone.

#include <poll.h>

#include <algorithm>
#include <utility>

#include "sim/core/child_process.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/farm/workers.hpp"

namespace stagecraft {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr int kTimeoutTick = 100;                 // Milliseconds between two looks for jobs that take too long.
constexpr Seconds kDyingPatience{1};              // A worker whose socket is closed has this long to end by itself.
constexpr char kJobEnd = 'e', kPoolFailed = 'f';  // How messages of the process of remote workers begin.

class ForkedWorker {
 public:
  explicit ForkedWorker(const JobFunction& work)
      : process_({.own_group = true, .without_files = true}, [&](MessageSocket& parent) {
          while (const auto job = parent.wait_for_next())
            if (!parent.send(work(std::stoi(*job)))) break;
        }) {}

  bool busy() const { return job_.has_value(); }
  int job() const { return *job_; }
  int file() { return process_.socket().file(); }
  double seconds() const { return std::chrono::duration<double>(SteadyClock::now() - begin_).count(); }

  /// A worker that has died in the meantime is found by receive().
  void give(int job) {
    job_ = job;
    begin_ = SteadyClock::now();
    process_.socket().send(std::to_string(job));
  }

  bool receive() { return process_.socket().receive(); }  ///< False after the worker's end.

  /// The end of its job, once the whole result has arrived.
  std::optional<JobEnd> take() {
    auto text = process_.socket().take();
    if (!text) return {};
    JobEnd end{.job = job(), .text = std::move(*text), .seconds = seconds()};
    job_.reset();
    return end;
  }

  ProcessEnd kill(Seconds patience) { return process_.kill(patience); }

 private:
  ChildProcess process_;
  std::optional<int> job_;
  SteadyClock::time_point begin_;
};

class ForkedWorkers : public Workers {
 public:
  ForkedWorkers(const FarmOptions& options, JobFunction work)
      : count_(options.workers), timeout_(options.timeout), work_(std::move(work)) {}

  void add(int job, const std::string&) override { waiting_.push_back(job); }
  std::vector<JobEnd> wait(int milliseconds) override { return wait(milliseconds, -1); }

  /// Returns also if the file `also` has something to read.
  std::vector<JobEnd> wait(int milliseconds, int also) {
    assign_jobs();
    std::vector<pollfd> files{{also, POLLIN, 0}};  // poll() ignores a negative number.
    for (const auto& worker : workers_) files.push_back({worker->file(), POLLIN, 0});
    poll(files.data(), files.size(), std::min(milliseconds, kTimeoutTick));
    std::vector<JobEnd> ends;
    for (auto& worker : workers_) serve(worker, ends);
    std::erase(workers_, nullptr);
    return ends;
  }

 private:
  void assign_jobs() {
    for (auto& worker : workers_) assign_next(*worker);
    while (!waiting_.empty() && std::ssize(workers_) < count_) {
      workers_.push_back(std::make_unique<ForkedWorker>(work_));
      assign_next(*workers_.back());
    }
  }

  void assign_next(ForkedWorker& worker) {
    if (worker.busy() || waiting_.empty()) return;
    worker.give(waiting_.front());
    waiting_.pop_front();
  }

  void serve(std::unique_ptr<ForkedWorker>& worker, std::vector<JobEnd>& ends) {
    const bool alive = worker->receive();
    if (auto end = worker->take()) {
      if (alive) assign_next(*worker);  // It works while the caller handles its last end.
      ends.push_back(std::move(*end));
    }
    const bool late = alive && worker->busy() && timeout_.value > 0 && worker->seconds() > timeout_.value;
    if (alive && !late) return;
    if (worker->busy()) {
      const auto how = late ? JobEnd::How::TimedOut : JobEnd::How::Crashed;
      JobEnd end{.job = worker->job(), .how = how, .text = {}, .seconds = worker->seconds()};
      end.text = to_text(worker->kill(late ? Seconds{} : kDyingPatience));
      ends.push_back(std::move(end));
    }
    worker.reset();
  }

  int count_;
  Seconds timeout_;
  JobFunction work_;
  std::deque<int> waiting_;
  std::vector<std::unique_ptr<ForkedWorker>> workers_;
};

class RemoteWorkers : public Workers {
 public:
  RemoteWorkers(const FarmOptions& options, const JobFunction& work)
      : process_({.own_group = true}, [&](MessageSocket& parent) {
          try {
            serve(parent, options, work);
          } catch (const std::exception& e) {
            parent.send(std::string(1, kPoolFailed) + e.what());
          }
        }) {}

  void add(int job, const std::string&) override { process_.socket().send(std::to_string(job)); }

  std::vector<JobEnd> wait(int milliseconds) override {
    MessageSocket& socket = process_.socket();
    pollfd ready{socket.file(), POLLIN, 0};
    poll(&ready, 1, milliseconds);
    const bool alive = socket.receive();
    std::vector<JobEnd> ends;
    while (auto message = socket.take()) {
      if (message->front() == kPoolFailed) throw BackendError("the workers' parent: " + message->substr(1));
      for (JobEnd& end : job_ends_from_bytes(message->substr(1))) ends.push_back(std::move(end));
    }
    if (!alive && ends.empty()) throw BackendError("the process that the workers belong to has died");
    return ends;
  }

 private:
  static void serve(MessageSocket& parent, const FarmOptions& options, const JobFunction& work) {
    ForkedWorkers workers(options, work);
    for (bool connected = true; connected;) {
      connected = parent.receive();
      while (const auto job = parent.take()) workers.add(std::stoi(*job), {});
      const std::vector<JobEnd> ends = workers.wait(kTimeoutTick, parent.file());
      if (!ends.empty()) connected = parent.send(kJobEnd + to_bytes(ends)) && connected;
    }
  }

  ChildProcess process_;
};

}  // namespace

std::unique_ptr<Workers> forked_workers(const FarmOptions& options, const JobFunction& work) {
  return std::make_unique<ForkedWorkers>(options, work);
}

std::unique_ptr<Workers> remote_workers(const FarmOptions& options, const JobFunction& work) {
  return std::make_unique<RemoteWorkers>(options, work);
}

}  // namespace stagecraft
