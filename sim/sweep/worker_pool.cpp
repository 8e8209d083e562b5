#include "sim/sweep/worker_pool.hpp"

#include <poll.h>

#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

using Wall = std::chrono::steady_clock;
constexpr int kStopTick = 100;                    // Milliseconds between two calls of `stop`.
constexpr Seconds kDyingPatience{1};              // A worker whose socket is closed has this long to end by itself.
constexpr char kJobEnd = 'e', kPoolFailed = 'f';  // How messages of a RemoteWorkerPool's process begin.

void serve_pool(MessageSocket& parent, const WorkerOptions& options, const JobFunction& work) {
  WorkerPool pool(options, work);
  for (bool connected = true; connected;) {
    connected = parent.receive();
    while (const auto job = parent.take()) pool.add(std::stoi(*job));
    for (const JobEnd& end : pool.wait(parent.file())) connected = parent.send(kJobEnd + to_bytes(end)) && connected;
  }
}

}  // namespace

class WorkerPool::Worker {
 public:
  explicit Worker(const JobFunction& work)
      : process_({.own_group = true, .without_files = true}, [&](MessageSocket& parent) {
          while (const auto job = parent.wait_for_next())
            if (!parent.send(work(std::stoi(*job)))) break;
        }) {}

  bool busy() const { return job_.has_value(); }
  int job() const { return *job_; }
  int file() { return process_.socket().file(); }
  double seconds() const { return std::chrono::duration<double>(Wall::now() - begin_).count(); }

  /// A worker that has died in the meantime is found by receive().
  void give(int job) {
    job_ = job;
    begin_ = Wall::now();
    process_.socket().send(std::to_string(job));
  }

  bool receive() { return process_.socket().receive(); }  ///< False after the worker's end.

  /// The end of its job, once the whole result has arrived.
  std::optional<JobEnd> take() {
    auto text = process_.socket().take();
    if (!text) return {};
    JobEnd end{job(), JobEnd::How::Done, std::move(*text), seconds()};
    job_.reset();
    return end;
  }

  ProcessEnd kill(Seconds patience) { return process_.kill(patience); }

 private:
  ChildProcess process_;
  std::optional<int> job_;
  Wall::time_point begin_;
};

WorkerPool::WorkerPool(const WorkerOptions& options, JobFunction work) : options_(options), work_(std::move(work)) {}
WorkerPool::~WorkerPool() = default;

void WorkerPool::add(int job) { waiting_.push_back(job); }

std::vector<JobEnd> WorkerPool::wait(int also) {
  assign_jobs();
  std::vector<pollfd> files{{also, POLLIN, 0}};  // poll() ignores a negative number.
  for (const auto& worker : workers_) files.push_back({worker->file(), POLLIN, 0});
  poll(files.data(), files.size(), kStopTick);
  std::vector<JobEnd> ends;
  for (auto& worker : workers_) serve(worker, ends);
  std::erase(workers_, nullptr);
  return ends;
}

void WorkerPool::assign_jobs() {
  for (auto& worker : workers_) assign_next(*worker);
  while (!waiting_.empty() && std::ssize(workers_) < options_.workers) {
    workers_.push_back(std::make_unique<Worker>(work_));
    assign_next(*workers_.back());
  }
}

void WorkerPool::assign_next(Worker& worker) {
  if (worker.busy() || waiting_.empty()) return;
  worker.give(waiting_.front());
  waiting_.pop_front();
}

void WorkerPool::serve(std::unique_ptr<Worker>& worker, std::vector<JobEnd>& ends) {
  const bool alive = worker->receive();
  if (auto end = worker->take()) {
    if (alive) assign_next(*worker);  // It works while the caller handles its last end.
    ends.push_back(std::move(*end));
  }
  const bool late = alive && worker->busy() && options_.timeout.value > 0 && worker->seconds() > options_.timeout.value;
  if (alive && !late) return;
  if (worker->busy()) {
    JobEnd end{worker->job(), late ? JobEnd::How::TimedOut : JobEnd::How::Crashed, {}, worker->seconds()};
    end.text = to_text(worker->kill(late ? Seconds{} : kDyingPatience));
    ends.push_back(std::move(end));
  }
  worker.reset();
}

RemoteWorkerPool::RemoteWorkerPool(const WorkerOptions& options, const JobFunction& work)
    : workers_(options.workers), process_({.own_group = true}, [&](MessageSocket& parent) {
        try {
          serve_pool(parent, options, work);
        } catch (const std::exception& e) {
          parent.send(std::string(1, kPoolFailed) + e.what());
        }
      }) {}

std::vector<std::string> RemoteWorkerPool::wait(int milliseconds) {
  MessageSocket& socket = process_.socket();
  pollfd ready{socket.file(), POLLIN, 0};
  poll(&ready, 1, milliseconds);
  const bool alive = socket.receive();
  std::vector<std::string> ends;
  while (auto message = socket.take()) {
    if (message->front() == kPoolFailed) throw BackendError("the workers' parent: " + message->substr(1));
    ends.push_back(message->substr(1));
  }
  if (!alive && ends.empty()) throw BackendError("the process that the workers belong to has died");
  return ends;
}

bool do_in_workers(std::span<const int> jobs, const WorkerOptions& options, const JobFunction& work,
                   const std::function<void(const JobEnd&)>& done) {
  WorkerPool pool(options, work);
  for (const int job : jobs) pool.add(job);
  for (int ended = 0; ended < std::ssize(jobs);) {
    if (options.stop()) return false;
    const std::vector<JobEnd> ends = pool.wait();
    if (options.stop()) return false;
    ended += static_cast<int>(ends.size());
    for (const JobEnd& end : ends) done(end);
  }
  return true;
}

}  // namespace stagecraft
