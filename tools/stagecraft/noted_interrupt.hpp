#pragma once

#include <csignal>
#include <utility>
#include <vector>

namespace stagecraft {

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
