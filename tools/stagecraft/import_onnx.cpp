#include "tools/stagecraft/import_onnx.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "models/onnx/import.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// The bytes of a file without a copy: weights of gigabytes are passed over, not read.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about {};
    if (file < 0 || fstat(file, &about) != 0) refuse(file, path, std::strerror(errno));
    if (!S_ISREG(about.st_mode)) refuse(file, path, "it is not a regular file");
    size_ = static_cast<std::size_t>(about.st_size);
    if (size_ > 0) start_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    if (start_ == MAP_FAILED) refuse(file, path, std::strerror(errno));
    close(file);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (start_) munmap(start_, size_);
  }

  std::string_view bytes() const { return {static_cast<const char*>(start_), size_}; }

 private:
  [[noreturn]] static void refuse(int file, const std::string& path, const std::string& why) {
    if (file >= 0) close(file);
    throw InputError(fmt::format("'{}' cannot be read: {}", path, why));
  }

  void* start_ = nullptr;
  std::size_t size_ = 0;
};

constexpr int kLargestSize = 1 << 30;

std::map<std::string, std::int64_t> read_sizes(const std::vector<std::string>& words) {
  std::map<std::string, std::int64_t> sizes;
  for (const std::string& word : words) {
    const std::size_t equals = word.rfind('=');
    if (equals == std::string::npos)
      throw InputError(fmt::format("--set: '{}' gives no size to a dimension", word), "write NAME=512");
    const std::string number = word.substr(equals + 1);
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), size);
    if (error != std::errc{} || end != number.data() + number.size() || size < 1 || size > kLargestSize)
      throw InputError(fmt::format("--set {}: '{}' is not a whole number from 1 to {}", word.substr(0, equals), number,
                                   kLargestSize));
    if (!sizes.emplace(word.substr(0, equals), size).second)
      throw InputError(fmt::format("--set: '{}' has a size already", word.substr(0, equals)));
  }
  return sizes;
}

}  // namespace

std::string import_onnx(const Arguments& a) {
  onnx::ImportOptions options;
  if (a.has("batch")) options.batch = a.count("batch", 1, kLargestSize);
  options.sizes = read_sizes(a.list("set"));
  if (a.has("unknown") && a.text("unknown") != "error" && a.text("unknown") != "zero")
    throw InputError(fmt::format("--unknown: there is no '{}'", a.text("unknown")), "write error or zero");
  options.unknown_is_zero = a.text("unknown") == "zero";
  options.keep_all = a.flag("keep-all");
  const std::string file = a.text("FILE");
  const MappedFile mapped(file);
  const onnx::Imported imported = onnx::import_model(mapped.bytes(), file, options);
  for (const std::string& warning : imported.warnings)
    std::fputs(fmt::format("{}: warning: {}\n", file, warning).c_str(), stderr);
  return onnx::to_yaml(imported);
}

}  // namespace stagecraft
