#pragma once

#include <algorithm>
#include <cstring>

#include "tests/support/emulated_gpu/streams.hpp"

namespace stagecraft::cuda {

constexpr int kGuardByte = 0xff;  ///< Such bytes are NaNs.

/// Fills the memory in the order of the stream, as its work sees it.
inline void watch_given_out(cudaStream_t stream, void* data, std::size_t room) {
  emulated_gpu::enqueue(stream, [=] { std::memset(data, kGuardByte, room); });
}

inline void watch_released(cudaStream_t stream, void* data, std::size_t bytes, std::size_t room) {
  emulated_gpu::enqueue(stream, [=] {
    const auto* const end = static_cast<const unsigned char*>(data);
    if (!std::all_of(end + bytes, end + room, [](unsigned char c) { return c == kGuardByte; }))
      throw emulated_gpu::Misuse("something wrote beyond the end of a tensor");
    std::memset(data, kGuardByte, room);
  });
}

}  // namespace stagecraft::cuda
