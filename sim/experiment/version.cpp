#include "sim/experiment/version.hpp"

#include <fstream>
#include <string>
#include <thread>

#include <fmt/core.h>
#include <stagecraft_commit.hpp>

#include "backends/backend.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {

std::string version() { return fmt::format("{} ({})", STAGECRAFT_VERSION, STAGECRAFT_COMMIT); }

std::string version_text() {
  std::string text = fmt::format("stagecraft {}\n  build    {}\n", version(), STAGECRAFT_BUILD);
  for (const BackendDef* b : backends::catalog()) {
    const std::string why = b->why_not();
    text += fmt::format("  {:<8} {}\n", b->name,
                        !why.empty()           ? why
                        : b->version().empty() ? "yes"
                                               : "yes " + b->version());
  }
  text.pop_back();
  return text;
}

std::string machine() {
  std::string name = "unknown processor";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(':') != std::string::npos) {
      name = std::string(trim(line.substr(line.find(':') + 1)));
      break;
    }
  return fmt::format("{}, {}", name, pluralize(std::thread::hardware_concurrency(), "core"));
}

}  // namespace stagecraft
