#pragma once

#include <csignal>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace stagecraft {

/// The signals that ask a process to end: Ctrl-C, that of `kill`, and that of a terminal that closes.
constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};

/// "interrupted", "terminated" or "hung up".
const char* signal_word(int signal);

/// From this call on, each of kEndingSignals removes half-written files, says in one line on stderr what was kept, and
/// ends the process by that signal, which a shell shows as 130, 143 or 129 and which stops its loops too. A
/// NotedInterrupt takes precedence, and a signal that was ignored before stays ignored.
void end_on_interrupt();

/// Sets what that line says, in place of "nothing was kept" or "the files written so far are whole".
void on_interrupt_say(const std::string& text);

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
