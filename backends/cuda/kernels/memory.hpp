#pragma once

#include <cuda_runtime_api.h>
#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

namespace stagecraft::cuda {

/// Memory for the work of one stream, at multiples of 256 bytes: taken from the device in blocks that grow, given out
/// from the smallest gap that is large enough. `release` counts when it is called, not when the stream gets there: what
/// is given out next may overlap, because it is used later on the same stream. Equal calls get equal places.
class Memory {
 public:
  explicit Memory(cudaStream_t stream) : stream_(stream) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  void* allocate(std::size_t bytes);  ///< BackendError when there is none.
  void release(void*, std::size_t bytes);

  std::size_t in_use() const { return in_use_; }      ///< Bytes given out and not released, rounded up.
  std::size_t reserved() const { return reserved_; }  ///< Bytes from the device.

 private:
  using Gap = std::tuple<std::size_t, std::size_t, std::size_t>;  ///< Size, block, offset.
  struct Block {
    char* data = nullptr;
    std::size_t size = 0;
    std::map<std::size_t, std::size_t> gaps;  ///< Size of each, by offset.
  };

  void grow(std::size_t room);
  void put_gap(std::size_t block, std::size_t offset, std::size_t size);
  void drop_gap(std::size_t block, std::size_t offset);

  cudaStream_t stream_;
  std::mutex mutex_;
  std::vector<Block> blocks_;
  std::set<Gap> gaps_;
  std::size_t in_use_ = 0, reserved_ = 0;
};

/// Numbers for the kernels of one call.
template <class T>
class Scratch {
 public:
  Scratch(Memory& memory, std::int64_t count)
      : memory_(memory),
        bytes_(static_cast<std::size_t>(count) * sizeof(T)),
        data_(static_cast<T*>(memory.allocate(bytes_))) {}
  ~Scratch() { memory_.release(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* data() const { return data_; }

 private:
  Memory& memory_;
  std::size_t bytes_;
  T* data_;
};

/// Memory of the host that copies of a stream read and write while the program goes on. A buffer is used again when the
/// copy is through.
class Staging {
 public:
  /// All buffers together have `limit` bytes, or one has more.
  explicit Staging(cudaStream_t stream, std::size_t limit = std::size_t{512} << 20) : stream_(stream), limit_(limit) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  /// `fill` writes the bytes, which are then copied to the device.
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
    cudaEvent_t free{};  ///< Recorded after the copy.
  };

  Buffer& take(std::size_t bytes);
  Buffer& last(std::list<Buffer>::iterator);
  void copy_up(const Buffer&, void* to, std::size_t bytes);
  void copy_down(const void* from, const Buffer&, std::size_t bytes);
  void clear() noexcept;

  cudaStream_t stream_;
  std::list<Buffer> buffers_;  ///< In the order of their last use.
  std::size_t limit_, reserved_ = 0;
};

}  // namespace stagecraft::cuda
