#pragma once

#include <string>

namespace stagecraft {

/// From here on Ctrl-C removes a half-written file, says in one line on stderr what was kept, and ends the process by
/// that signal, which a shell shows as 130 and which stops its loops too. Who notes it himself (NotedInterrupt) goes
/// before; where it is to be ignored it still is.
void end_on_interrupt();

/// What that line says from here on, in place of "nothing was kept" or "the files written so far are whole".
void on_interrupt_say(const std::string& kept);

}  // namespace stagecraft
