#pragma once

#include <csignal>
#include <iterator>
#include <utility>
#include <vector>

#include "tools/stagecraft/interrupt.hpp"

namespace stagecraft {

/// While it lives, the signals that ask for an end are noted and do not end the process; one that was ignored before
/// stays ignored.
class NotedInterrupt {
 public:
  explicit NotedInterrupt(const std::vector<int>& signals = {std::begin(kEndingSignals), std::end(kEndingSignals)});
  ~NotedInterrupt();
  NotedInterrupt(const NotedInterrupt&) = delete;
  NotedInterrupt& operator=(const NotedInterrupt&) = delete;

  static bool came();
  static const char* word();  ///< signal_word() of the signal that came.
  static int exit_code();     ///< What a shell shows for it: 130, 143 or 129; 130 too where another process had it.

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace stagecraft
