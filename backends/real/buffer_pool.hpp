#pragma once

#include <bit>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace stagecraft::real {

/// Buffers of messages, which are used again: fresh memory of more than 128 KiB comes page by page from the system,
/// which takes longer than the copy into it. Sizes are powers of two. A buffer goes back when its last owner lets go of
/// it, also after the pool itself is gone. Threads may share a pool.
class BufferPool {
 public:
  std::shared_ptr<char[]> take(std::size_t bytes) {
    const std::size_t size = std::bit_ceil(bytes < 64 ? std::size_t{64} : bytes);
    std::unique_ptr<char[]> buffer = shelf_->take(size);
    if (!buffer) buffer = std::unique_ptr<char[]>(new char[size]);
    return {buffer.release(), [shelf = shelf_, size](char* data) { shelf->give(size, std::unique_ptr<char[]>(data)); }};
  }

 private:
  class Shelf {
   public:
    std::unique_ptr<char[]> take(std::size_t size) {
      const std::lock_guard lock(mutex_);
      std::vector<std::unique_ptr<char[]>>& unused = unused_[size];
      if (unused.empty()) return nullptr;
      std::unique_ptr<char[]> buffer = std::move(unused.back());
      unused.pop_back();
      return buffer;
    }
    void give(std::size_t size, std::unique_ptr<char[]> buffer) {
      const std::lock_guard lock(mutex_);
      unused_[size].push_back(std::move(buffer));
    }

   private:
    std::mutex mutex_;
    std::map<std::size_t, std::vector<std::unique_ptr<char[]>>> unused_;  ///< By size.
  };

  std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();
};

}  // namespace stagecraft::real
