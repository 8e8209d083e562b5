#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <list>

namespace stagecraft::cuda {

/// Memory of the host that copies of a stream read and write while the program goes on. A buffer is used again when the
/// copy is through.
class Staging {
 public:
  /// All buffers together have `most` bytes, or one has more.
  explicit Staging(cudaStream_t stream, std::size_t most = std::size_t{512} << 20) : stream_(stream), most_(most) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  /// `fill` writes so many bytes; then they are copied to the device.
  template <class Fill>
  void upload(std::size_t bytes, void* to, Fill&& fill) {
    if (bytes == 0) return;
    Buffer& buffer = take(bytes);
    fill(buffer.data);
    copy_up(buffer, to, bytes);
  }
  /// Waits for the stream; then `read` finds the bytes.
  template <class Read>
  void download(std::size_t bytes, const void* from, Read&& read) {
    if (bytes == 0) return;
    Buffer& buffer = take(bytes);
    copy_down(from, buffer, bytes);
    read(static_cast<const void*>(buffer.data));
  }

 private:
  struct Buffer {
    void* data = nullptr;
    std::size_t size = 0;
    cudaEvent_t free{};  ///< Recorded behind the copy.
  };

  Buffer& take(std::size_t bytes);
  Buffer& last(std::list<Buffer>::iterator);
  void copy_up(const Buffer&, void* to, std::size_t bytes);
  void copy_down(const void* from, const Buffer&, std::size_t bytes);
  void clear() noexcept;

  cudaStream_t stream_;
  std::list<Buffer> buffers_;  ///< In the order of their last use.
  std::size_t most_, held_ = 0;
};

}  // namespace stagecraft::cuda
