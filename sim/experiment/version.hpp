#pragma once

#include <string>

namespace stagecraft {

/// "0.1.0"
std::string version();
/// The version, and what tells apart programs that were built from it in other ways, where the linker has noted that.
std::string build_name();
/// What `stagecraft --version` prints: version, and what this build can do. Libraries that only runs need are not
/// loaded.
std::string version_text();
/// version_text() with what `stagecraft doctor` finds out: every library is loaded.
std::string checked_version_text();

/// This machine: its processor and cores. Printed with what was measured on it.
std::string machine();

}  // namespace stagecraft
