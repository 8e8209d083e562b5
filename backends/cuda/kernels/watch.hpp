#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

/// Tests look whether memory is written beyond its end, or read before it was written or after it was released.
#ifdef STAGECRAFT_EMULATED_GPU
#include <emulated_watch.hpp>
#else

namespace stagecraft::cuda {

inline void watch_given_out(cudaStream_t, void*, std::size_t /*room*/) {}
inline void watch_released(cudaStream_t, void*, std::size_t /*bytes*/, std::size_t /*room*/) {}

}  // namespace stagecraft::cuda

#endif
