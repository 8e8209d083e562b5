#include "sim/report/tied.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace stagecraft {

std::string unexchanged_text(const Unexchanged& rows) {
  std::vector<std::string> names;
  Bytes least, most;
  for (const auto& [name, bytes] : rows) {
    if (bytes.value <= 0) continue;
    least = names.empty() ? bytes : std::min(least, bytes);
    most = std::max(most, bytes);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.empty()) return {};
  const std::string bytes = least < most ? fmt::format("{} to {}", to_text(least), to_text(most)) : to_text(most);
  return fmt::format(
      "without the exchange of tied weights' gradients ({} for each update), which is simulated only "
      "where a schedule flushes: {}",
      bytes, join(names));
}

}  // namespace stagecraft
