#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace stagecraft::cpu {

/// Blocks at multiples of 64 bytes. What was released is handed out again for the same size, so that a training loop
/// touches no new memory after its first iteration. Everything goes back to the system with the pool. For any thread.
class MemoryPool {
 public:
  void* allocate(std::size_t bytes);
  void release(void* block, std::size_t bytes);

  std::size_t in_use() const;    ///< Bytes handed out and not released, rounded up.
  std::size_t reserved() const;  ///< Bytes from the system.

 private:
  struct Free {
    void operator()(void* block) const { std::free(block); }
  };

  mutable std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> free_;
  std::vector<std::unique_ptr<void, Free>> blocks_;
  std::size_t in_use_ = 0, reserved_ = 0;
};

/// Numbers for the time of one call.
template <class T>
class Scratch {
 public:
  Scratch(MemoryPool& pool, std::int64_t count)
      : pool_(pool),
        bytes_(static_cast<std::size_t>(count) * sizeof(T)),
        data_(static_cast<T*>(pool.allocate(bytes_))) {}
  ~Scratch() { pool_.release(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* data() const { return data_; }

 private:
  MemoryPool& pool_;
  std::size_t bytes_;
  T* data_;
};

}  // namespace stagecraft::cpu
