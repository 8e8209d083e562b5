#pragma once

#include <chrono>

#include "sim/sweep/run_sweep.hpp"

namespace stagecraft {

/// How far a sweep is, on stderr: a bar on a terminal, a line every ten seconds elsewhere.
class SweepProgressLine {
 public:
  SweepProgressLine();
  ~SweepProgressLine();
  SweepProgressLine(const SweepProgressLine&) = delete;
  SweepProgressLine& operator=(const SweepProgressLine&) = delete;

  void show(const SweepProgress&);

 private:
  bool terminal_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// While it lives, Ctrl-C is noted and does not end the process; a signal that was ignored before stays ignored.
class NotedInterrupt {
 public:
  NotedInterrupt();
  ~NotedInterrupt();
  NotedInterrupt(const NotedInterrupt&) = delete;
  NotedInterrupt& operator=(const NotedInterrupt&) = delete;

  static bool came();
};

}  // namespace stagecraft
