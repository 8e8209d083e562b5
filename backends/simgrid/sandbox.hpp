#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "sim/core/quantity.hpp"

namespace stagecraft::sg {

/// Zeroed memory that a child of this process writes and this process reads.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(address_), bytes_ / sizeof(T)};
  }

 private:
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Runs `work` in a forked child, whose memory is lost with it: results come back through SharedMemory.
///
/// InputError, Infeasible and InternalError that `work` throws are thrown again here. Anything else that ends the child
/// (another exception, a signal, an exit, `timeout` of wall time unless that is zero) becomes a BackendError with the
/// last words of the library. The child dies with this process. One call takes about half a millisecond.
void run_in_child(const std::function<void()>& work, Seconds timeout);

}  // namespace stagecraft::sg
