#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "backends/cuda/driver.hpp"
#include "backends/cuda/launch_limit.hpp"

/// How kernels start and what their threads share. Tests compile the same files for a GPU that a CPU plays.
#ifdef STAGECRAFT_EMULATED_GPU
#include <emulated_launch.hpp>
#else

namespace stagecraft::cuda {

/// Dynamic shared memory of the block; its size is the `shared_bytes` of launch().
template <class T>
__device__ T* shared_memory() {
  extern __shared__ __align__(16) unsigned char stagecraft_shared[];
  return reinterpret_cast<T*>(stagecraft_shared);
}

/// The value of the thread of the warp whose lane differs in the bits of the mask. All threads of a block call it, with
/// 32 threads across.
template <class T>
__device__ T from_lane(T value, unsigned mask) {
  return __shfl_xor_sync(0xffffffffU, value, static_cast<int>(mask));
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            const Arguments&... arguments) {
  cudaLaunchConfig_t where{};
  where.gridDim = grid;
  where.blockDim = block;
  where.dynamicSmemBytes = shared_bytes;
  where.stream = stream;
  check(cudaLaunchKernelEx(&where, kernel, arguments...), "the launch of a kernel");
  submitted(stream, "a kernel");
}

}  // namespace stagecraft::cuda

#endif
