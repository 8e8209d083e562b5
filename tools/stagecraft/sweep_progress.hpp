#pragma once

#include <chrono>
#include <csignal>
#include <utility>
#include <vector>

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

/// While it lives, Ctrl-C (or each of the signals) is noted and does not end the process; a signal that was ignored
/// before stays ignored.
class NotedInterrupt {
 public:
  explicit NotedInterrupt(std::vector<int> signals = {SIGINT});
  ~NotedInterrupt();
  NotedInterrupt(const NotedInterrupt&) = delete;
  NotedInterrupt& operator=(const NotedInterrupt&) = delete;

  static bool came();

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace stagecraft
