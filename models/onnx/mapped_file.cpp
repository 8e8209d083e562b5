// Maps an ONNX file into memory.

#include "models/onnx/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "sim/core/file.hpp"

namespace stagecraft::onnx {
namespace {

[[noreturn]] void refuse(int file, const std::string& path, const std::string& why) {
  if (file >= 0) close(file);
  throw InputError(fmt::format("'{}' cannot be read: {}", path, why));
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  note_input(path);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat about {};
  if (file < 0 || fstat(file, &about) != 0) refuse(file, path, std::strerror(errno));
  if (!S_ISREG(about.st_mode)) refuse(file, path, "it is not a regular file");
  size_ = about.st_size;
  if (size_ > 0) start_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  if (start_ == MAP_FAILED) refuse(file, path, std::strerror(errno));
  close(file);
}

MappedFile::~MappedFile() {
  if (start_) munmap(start_, size_);
}

}  // namespace stagecraft::onnx
