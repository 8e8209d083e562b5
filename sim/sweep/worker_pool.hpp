#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/core/child_process.hpp"

namespace stagecraft {

/// How one job ended: with a result, or with its process.
struct JobEnd {
  enum class How { Done, Crashed, TimedOut };
  int job = 0;
  How how = How::Done;
  std::string text;    ///< The result; of a job without one, how the process ended.
  double seconds = 0;  ///< Since a worker got the job.
};

/// A message between processes; job_end_from_bytes() is the inverse.
std::string to_bytes(const JobEnd&);
JobEnd job_end_from_bytes(const std::string&);

struct WorkerOptions {
  int workers = 1;
  Seconds timeout{0};                                 ///< Limit for each job; zero: none.
  std::function<bool()> stop = [] { return false; };  ///< Called several times a second; true stops at once.
};

/// Does job number `job` and returns its result.
using JobFunction = std::function<std::string(int job)>;

/// Forked processes that work on one job after another, each with its own memory, so that a job that crashes or hangs
/// costs its process only. They are forked when there is work for them and die with this process; Ctrl-C reaches only
/// this process.
class WorkerPool {
 public:
  WorkerPool(const WorkerOptions&, JobFunction);
  ~WorkerPool();

  void add(int job);  ///< Jobs begin in the order in which they are added.
  /// Job ends since the last call. Waits a tenth of a second at most, less if `also`, a file, has something to read.
  std::vector<JobEnd> wait(int also = -1);

 private:
  class Worker;
  void assign_jobs();
  void assign_next(Worker&);
  void serve(std::unique_ptr<Worker>&, std::vector<JobEnd>& ends);

  WorkerOptions options_;
  JobFunction work_;
  std::deque<int> waiting_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

/// A WorkerPool in a process of its own, for programs that use MPI: MPI's registered memory does not survive a fork.
/// Make it before MPI starts; then neither that process nor its workers see MPI, and this process never forks again.
class RemoteWorkerPool {
 public:
  RemoteWorkerPool(const WorkerOptions&, const JobFunction&);

  int workers() const { return workers_; }
  void add(int job) { process_.socket().send(std::to_string(job)); }
  /// Job ends since the last call, as to_bytes() writes them. Waits at most so long. BackendError if the process died.
  std::vector<std::string> wait(int milliseconds);

 private:
  int workers_;
  ChildProcess process_;
};

/// Does all jobs in workers. `done` is called in this process for each end, in any order. False if `stop` said true:
/// jobs whose end was not passed to `done` are lost then.
bool do_in_workers(std::span<const int> jobs, const WorkerOptions&, const JobFunction&,
                   const std::function<void(const JobEnd&)>& done);

}  // namespace stagecraft
