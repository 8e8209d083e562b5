#pragma once

#include <random>
#include <string>

namespace stagecraft::test {

/// Up to four changes: a byte, a bit, a piece taken out, a piece put in twice.
inline std::string damaged(std::string bytes, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (std::size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = below(bytes.size()), kind = below(4);
    if (kind == 0) bytes[at] = static_cast<char>(below(256));
    if (kind == 1) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
    if (kind == 2) bytes.erase(at, 1 + below(8));
    if (kind == 3) bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(16)));
  }
  return bytes;
}

}  // namespace stagecraft::test
