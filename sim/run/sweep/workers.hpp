#pragma once

#include <functional>
#include <span>
#include <string>

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

/// Does jobs in forked processes that live on from job to job, each with its own memory, so that a job that crashes or
/// hangs costs its process only. A free worker gets the next job of the list. `done` hears of each end, in any order,
/// in this process; jobs whose end it has not heard of when `stop` says true are lost. Workers die with this process,
/// however it ends, and Ctrl-C reaches only this process. False when stopped.
bool do_in_workers(std::span<const int> jobs, const WorkerOptions&, const std::function<std::string(int)>& work,
                   const std::function<void(const JobEnd&)>& done);

}  // namespace stagecraft
