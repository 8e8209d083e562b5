#pragma once

#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/sweep/worker_pool.hpp"

namespace stagecraft {

/// The state of the processes that share a sweep, as the first process knows it.
struct Distribution {
  bool stopped = false;
  std::vector<int> lost;                       ///< Ranks that went silent; their jobs were given to others.
  std::map<int, std::string> without_workers;  ///< Ranks whose workers have died, and why.
};

/// Counts for each job how many processes were lost while they worked on it.
class LostWorkerCounter {
 public:
  /// A process was lost. `given` are its jobs in order; its workers were at the first of them, as many as it has
  /// `workers`. Returns the jobs that have now been lost too often to be tried again.
  std::vector<int> too_many(const std::deque<int>& given, int workers);

 private:
  std::map<int, int> count_;
};

/// Runs on the first process of a joined world: gives jobs to its own pool and to the other processes, whichever is
/// free first, and passes each end to `done`. When no job is left, a process that has nothing to do also gets a job
/// that is queued after a long one in another process; the first end of a job counts. A process that is silent for ten
/// seconds is lost, and its jobs go to others, as do the jobs of a process whose workers have died; a job at which two
/// processes were lost counts as crashed. Throws BackendError when no workers are left. `key` identifies the work and
/// must be equal in all processes. `state` is valid at any time, because `done` may throw.
void distribute_jobs(std::span<const int> jobs, const std::string& key, RemoteWorkerPool& pool,
                     const std::function<bool()>& stop, const std::function<void(const JobEnd&)>& done,
                     Distribution& state);

/// Runs on the other processes: does the jobs that the first process sends, until that ends the sweep.
void do_sent_jobs(const std::string& key, RemoteWorkerPool& pool);

/// Tells the other processes that the sweep has ended, whichever way the first process leaves it.
class ShutdownGuard {
 public:
  explicit ShutdownGuard(const Distribution& state) : state_(state) {}
  ~ShutdownGuard();
  ShutdownGuard(const ShutdownGuard&) = delete;
  ShutdownGuard& operator=(const ShutdownGuard&) = delete;

 private:
  const Distribution& state_;
};

}  // namespace stagecraft
