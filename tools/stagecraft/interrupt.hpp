#pragma once

#include <string>

namespace stagecraft {

/// From this call on, Ctrl-C removes a half-written file, says in one line on stderr what was kept, and ends the
/// process by that signal, which a shell shows as 130 and which stops its loops too. A NotedInterrupt takes precedence,
/// and a signal that was ignored before stays ignored.
void end_on_interrupt();

/// Sets what that line says, in place of "nothing was kept" or "the files written so far are whole".
void on_interrupt_say(const std::string& text);

}  // namespace stagecraft
