#pragma once

#include <cstdint>
#include <memory>

#include "backends/cuda/driver.hpp"
#include "backends/cuda/kernels/kernels.hpp"
#ifdef STAGECRAFT_EMULATED_GPU
#include "tests/support/emulated_gpu/streams.hpp"
#endif

namespace stagecraft::test {

/// In a program with a real GPU there is one order of threads and blocks: the device's own.
#ifdef STAGECRAFT_EMULATED_GPU
constexpr bool kEmulated = true;
inline void fresh_gpu(std::uint64_t seed) { emulated_gpu::reset({.seed = seed}); }
#else
constexpr bool kEmulated = false;
inline void fresh_gpu(std::uint64_t) {}
#endif
constexpr std::uint64_t kSeeds = kEmulated ? 3 : 1;

/// A stream on a GPU whose threads run in an order drawn with the seed, and kernels for it.
class Gpu {
 public:
  explicit Gpu(std::size_t width, std::uint64_t seed = 1, cuda::Precision precision = cuda::Precision::Exact) {
    fresh_gpu(seed);
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    if (width > 0) kernels_ = cuda::make_kernels({stream_, 16, precision}, width);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu() {
    kernels_.reset();
    cudaStreamDestroy(stream_);
  }

  real::Kernels& kernels() { return *kernels_; }
  cudaStream_t stream() const { return stream_; }

 private:
  cudaStream_t stream_{};
  std::unique_ptr<real::Kernels> kernels_;
};

}  // namespace stagecraft::test
