#pragma once

#include <csignal>
#include <string>

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

}  // namespace stagecraft
