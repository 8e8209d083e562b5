#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace stagecraft::test {

/// Writes a file that a test reads, or replaces it.
inline void write_file(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

/// A new folder, removed with this object. In a child that was forked meanwhile it stays.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "stagecraft-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() {
    if (getpid() == maker_) std::filesystem::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& file) const { return path_ + '/' + file; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  pid_t maker_ = getpid();
};

/// The path of a file that this process alone has: the same test may run in several processes at once.
inline std::string own_file(const std::string& name) {
  static const Folder folder;
  return folder / name;
}

/// Writes such a file.
inline std::string own_file(const std::string& name, std::string_view content) {
  write_file(own_file(name), content);
  return own_file(name);
}

}  // namespace stagecraft::test
