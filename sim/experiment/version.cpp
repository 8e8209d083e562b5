#include "sim/experiment/version.hpp"

#include <stagecraft_commit.hpp>

#include <fmt/format.h>

#include "backends/backend.hpp"

namespace stagecraft {

std::string version() { return fmt::format("{} ({})", STAGECRAFT_VERSION, STAGECRAFT_COMMIT); }

std::string version_text() {
  std::string text = fmt::format("stagecraft {}\n  build    {}\n", version(), STAGECRAFT_BUILD);
  for (const BackendDef* b : backends::all()) {
    const std::string why = b->why_not();
    text += fmt::format("  {:<8} {}\n", b->name,
                        !why.empty()           ? why
                        : b->version().empty() ? "yes"
                                               : "yes " + b->version());
  }
  text.pop_back();
  return text;
}

}  // namespace stagecraft
