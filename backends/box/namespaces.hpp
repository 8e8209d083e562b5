#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "sim/core/file.hpp"

namespace stagecraft::box {

/// One sentence why this user cannot make network namespaces here, and which setting allows it; empty if that works.
std::string why_no_namespaces();

/// Gives this process, which has one thread, the rights to make networks: a user without them gets a user namespace of
/// its own. BackendError where the system forbids it.
void become_administrator();

/// A new network namespace, which lives as long as this file is open or a process is in it. The calling thread is in it
/// afterwards.
OpenFile make_namespace();

/// Moves the calling thread into a network namespace.
void enter_namespace(int file);

/// Moves this process, which has one thread, into a namespace of `holder`, the process of a RunningNetwork: file
/// `number` of it. The names of its devices are host names there (`hosts`: lines of /etc/hosts), and `name` is the name
/// of this one. False where the system forbids other lines of /etc/hosts, so that programs need addresses.
bool join_namespace(pid_t holder, int number, const std::string& name, const std::string& hosts);

/// Runs `program` with these words in a namespace and gives it `input`. BackendError with what it printed if it fails.
void run_in_namespace(int file, const std::string& program, const std::vector<std::string>& words,
                      std::string_view input);

/// Writes a setting of the kernel below /proc/sys of a namespace; false where this user may not or it does not exist.
bool set_in_namespace(int file, const std::string& setting, const std::string& value);

}  // namespace stagecraft::box
