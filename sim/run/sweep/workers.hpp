#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/core/quantity.hpp"

namespace stagecraft {

/// How one job ended: with what `work` gave back, or with its process.
struct JobEnd {
  enum class How { Done, Crashed, TimedOut };
  int job = 0;
  How how = How::Done;
  std::string text;    ///< Of `work`; else how the process ended.
  double seconds = 0;  ///< Since it was given out.
};

struct WorkerOptions {
  int workers = 1;
  Seconds timeout{0};                                 ///< For a job; zero: none.
  std::function<bool()> stop = [] { return false; };  ///< Asked several times a second; true ends all at once.
};

/// Forked processes that live on from job to job, each with its own memory, so that a job that crashes or hangs costs
/// its process only. They are forked when there is work for them, die with this process, however it ends, and Ctrl-C
/// reaches only this process.
class Workers {
 public:
  Workers(const WorkerOptions&, std::function<std::string(int)> work);
  ~Workers();

  void give(int job);  ///< It begins when those given before have begun, and a worker is free.
  /// Ends since the last call. Waits a tenth of a second at most, less when `also`, a file, has something to read.
  std::vector<JobEnd> wait(int also = -1);

 private:
  class Worker;
  void staff();
  void give_next(Worker&);
  void serve(std::unique_ptr<Worker>&, std::vector<JobEnd>& ends);

  WorkerOptions options_;
  std::function<std::string(int)> work_;
  std::deque<int> waiting_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

/// Does jobs in workers, in the order of the list. `done` hears of each end, in any order, in this process; jobs whose
/// end it has not heard of when `stop` says true are lost. False when stopped.
bool do_in_workers(std::span<const int> jobs, const WorkerOptions&, const std::function<std::string(int)>& work,
                   const std::function<void(const JobEnd&)>& done);

}  // namespace stagecraft
