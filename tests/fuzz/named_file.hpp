#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

/// SQLite needs a file with a name. It is in memory, because closing a truncated file waits for the disk.
class NamedFile {
 public:
  NamedFile() : path_(folder() / ("stagecraft-fuzz-" + std::to_string(getpid()))) {}
  ~NamedFile() { remove(); }

  std::string write(std::string_view bytes) const {
    remove();
    std::ofstream(path_, std::ios::binary) << bytes;
    return path_.string();
  }

 private:
  static std::filesystem::path folder() {
    const std::filesystem::path memory = "/dev/shm";
    return access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
  }

  /// Removes the file and the logs that SQLite leaves next to a damaged one; the next file would be read with them.
  void remove() const {
    for (const char* end : {"", "-wal", "-shm", "-journal"}) unlink((path_.string() + end).c_str());
  }

  std::filesystem::path path_;
};
