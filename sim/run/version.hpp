#pragma once

#include <string>

namespace stagecraft {

/// "0.1.0"
std::string version();
/// What `stagecraft --version` prints: version, and what this build can do.
std::string version_text();

}  // namespace stagecraft
