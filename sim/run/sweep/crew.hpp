#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "sim/run/sweep/line.hpp"
#include "sim/run/sweep/workers.hpp"

namespace stagecraft {

/// The end of a job as text, between processes.
std::string to_bytes(const JobEnd&);
JobEnd job_end_from_bytes(const std::string&);

/// Workers in the care of a process beside this one. Forked before MPI is there, it and its workers never see it, and
/// this process need not fork any more: MPI's memory and network cards stand no fork. They die with this process.
class Crew {
 public:
  Crew(const WorkerOptions&, const std::function<std::string(int)>& work);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int workers() const { return workers_; }
  void give(int job) { line_.send(std::to_string(job)); }
  /// Ends since the last call, as to_bytes() has them. Waits at most so long. BackendError when the crew has died.
  std::vector<std::string> wait(int milliseconds);

 private:
  int workers_;
  pid_t id_ = -1;
  Line line_{-1};
};

}  // namespace stagecraft
