#pragma once

#include <memory>
#include <vector>

#include "sim/farm/job_farm.hpp"

namespace stagecraft {

/// The workers of one process.
class Workers {
 public:
  Workers() = default;
  virtual ~Workers() = default;  ///< Ends the jobs that run.
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Jobs begin in the order in which they are added.
  virtual void add(int job, const std::string& description) = 0;
  /// Ends since the last call. Waits at most so long for one. BackendError if there are no workers any more.
  virtual std::vector<JobEnd> wait(int milliseconds) = 0;
  /// Returns when no job runs in the memory of this process. Jobs without an end have none then.
  virtual void cancel() {}
};

/// Threads; on fewer where the system has no more. With `is_caller_one` the thread that calls wait() is one of them.
std::unique_ptr<Workers> thread_workers(const FarmOptions&, bool is_caller_one,
                                        const std::function<std::string(int job, const std::string& description)>&);

/// Forked processes that work on one job after another, each with its own memory. They are forked when there is work
/// for them and die with this process; Ctrl-C reaches only this process.
std::unique_ptr<Workers> forked_workers(const FarmOptions&, const JobFunction&);

/// Forked workers of a separate process, for programs that use MPI. Make them before MPI starts; then neither that
/// process nor its workers see MPI, and this process never forks again.
std::unique_ptr<Workers> remote_workers(const FarmOptions&, const JobFunction&);

/// Calls FarmOptions::elsewhere with all jobs that wait.
std::unique_ptr<Workers> workers_elsewhere(const FarmOptions&);

}  // namespace stagecraft
