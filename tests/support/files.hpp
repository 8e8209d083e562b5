#pragma once

#include <fstream>
#include <string>
#include <string_view>

namespace stagecraft::test {

/// Writes a file that a test reads, or replaces it.
inline void write_file(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace stagecraft::test
