#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace stagecraft::fuzz {

/// A file that exists in memory only.
class MemoryFile {
 public:
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  void write(std::string_view text) {
    if (ftruncate(descriptor_, 0) != 0) std::abort();
    if (pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) std::abort();
  }

 private:
  int descriptor_ = memfd_create("fuzz", 0);
};

}  // namespace stagecraft::fuzz
