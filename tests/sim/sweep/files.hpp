#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "sim/sweep/run_sweep.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::test {

/// Makes a folder and one file in it read-only while this object lives; root runs as an unprivileged user meanwhile.
class NothingWritable {
 public:
  NothingWritable(const Folder& folder, const std::string& file) : folder_(folder / "") {
    using std::filesystem::perms;
    constexpr perms kRead = perms::owner_read | perms::group_read | perms::others_read;
    std::filesystem::permissions(folder / file, kRead);
    std::filesystem::permissions(folder_, kRead | perms::owner_exec | perms::group_exec | perms::others_exec);
    if (root_) root_ = setresuid(kNobody, kNobody, 0) == 0;
  }
  ~NothingWritable() {
    if (root_ && setresuid(0, 0, 0) != 0) std::abort();
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
  }
  NothingWritable(const NothingWritable&) = delete;
  NothingWritable& operator=(const NothingWritable&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
  std::string folder_;
  bool root_ = getuid() == 0;
};

/// Writes a sweep of the quickstart scenario; `rest` is the rest of the file.
inline std::string write_sweep(const Folder& folder, const std::string& rest) {
  const std::string file = folder / "sweep.yaml";
  write_file(file, "schema: sweep/1\nbase: examples/quickstart\nbackend: ideal\n" + rest);
  return file;
}

inline std::vector<Point> points_of(const std::string& rest) {
  const Folder folder;
  std::vector<Diagnostic> warnings;
  return stagecraft::points_of(load_sweep(write_sweep(folder, rest)), warnings);
}

inline std::vector<std::string> labels(const std::vector<Point>& points) {
  std::vector<std::string> list;
  for (const Point& p : points) list.push_back(p.label);
  return list;
}

}  // namespace stagecraft::test
