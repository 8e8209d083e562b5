#pragma once

#include <tuple>

#include "backends/cuda/launch_limit.hpp"
#include "tests/support/emulated_gpu/device/fibers.hpp"
#include "tests/support/emulated_gpu/streams.hpp"

/// What backends/cuda/kernels/launch.hpp offers, and the words of CUDA's language, for a compiler of C++.
#define threadIdx (::stagecraft::emulated_gpu::here().thread)
#define blockIdx (::stagecraft::emulated_gpu::here().block)
#define blockDim (::stagecraft::emulated_gpu::here().block_size)
#define gridDim (::stagecraft::emulated_gpu::here().grid_size)
#define __syncthreads() (::stagecraft::emulated_gpu::barrier())

namespace stagecraft::cuda {

/// Checked, unlike that of a GPU.
template <class T>
class SharedMemory {
 public:
  T& operator[](std::size_t i) const {
    const emulated_gpu::Here& h = emulated_gpu::here();
    if ((i + 1) * sizeof(T) > h.shared_bytes) throw emulated_gpu::Misuse("beyond the end of the shared memory");
    return reinterpret_cast<T*>(h.shared)[i];
  }
};

template <class T>
SharedMemory<T> shared_memory() {
  return {};
}

/// A GPU asks this of the threads of a warp alone, but here a barrier is for all threads of a block.
template <class T>
T from_lane(T value, unsigned mask) {
  static T values[1024];
  if (blockDim.x != 32) throw emulated_gpu::Misuse("a warp is not a row of threads");
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  values[thread] = value;
  __syncthreads();
  const T other = values[thread ^ mask];
  __syncthreads();
  return other;
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            const Arguments&... arguments) {
  // Copied now, as a launch does; the conversions are the kernel's.
  emulated_gpu::enqueue(stream, [=, copied = std::tuple<Parameters...>(arguments...)] {
    emulated_gpu::run_grid(grid, block, shared_bytes, [&] { std::apply(kernel, copied); });
  });
  submitted(stream, "a kernel");
}

}  // namespace stagecraft::cuda
