#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stagecraft::onnx {

/// The bytes of a file without a copy: weights of gigabytes are passed over, not read. The file counts as an input.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);  ///< InputError when it cannot be read.
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {static_cast<const char*>(start_), size_}; }

 private:
  void* start_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace stagecraft::onnx
