#pragma once

#include <string>

namespace stagecraft {

/// "0.1.0"
std::string version();
/// What `stagecraft --version` prints: version, and what this build can do.
std::string version_text();

/// This machine: its processor and cores. Printed with what was measured on it.
std::string machine();

}  // namespace stagecraft
