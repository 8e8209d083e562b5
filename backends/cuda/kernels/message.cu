// Copies a message by a few thread blocks, with 16 bytes at once where addresses allow it (`run.gpu.messages: kernel`).

#include <algorithm>
#include <cstdint>

#include "backends/cuda/kernels/kernels.hpp"
#include "backends/cuda/kernels/launch.hpp"

namespace stagecraft::cuda {
namespace {

constexpr unsigned kThreads = 512, kMostBlocks = 16;

constexpr unsigned kAtOnce = 4;  // Words that a thread reads before it writes any: few threads have to wait for memory.

/// Copies words, then the single bytes after the last whole word.
template <class Word>
__global__ void copy_kernel(const unsigned char* from, unsigned char* to, std::size_t bytes) {
  const std::size_t threads = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  const std::size_t thread = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::size_t words = bytes / sizeof(Word);
  const auto* const source = reinterpret_cast<const Word*>(from);
  auto* const target = reinterpret_cast<Word*>(to);
  std::size_t i = thread;
  for (; i + (kAtOnce - 1) * threads < words; i += kAtOnce * threads) {
    Word chunk[kAtOnce];
    for (unsigned k = 0; k < kAtOnce; ++k) chunk[k] = source[i + k * threads];
    for (unsigned k = 0; k < kAtOnce; ++k) target[i + k * threads] = chunk[k];
  }
  for (; i < words; i += threads) target[i] = source[i];
  for (std::size_t b = words * sizeof(Word) + thread; b < bytes; b += threads) to[b] = from[b];
}

template <class Word>
void copy_words(const void* from, void* to, std::size_t bytes, cudaStream_t stream) {
  const std::size_t words = std::max<std::size_t>(1, bytes / sizeof(Word));
  const auto blocks = static_cast<unsigned>(std::min<std::size_t>((words + kThreads - 1) / kThreads, kMostBlocks));
  launch(copy_kernel<Word>, dim3(blocks), dim3(kThreads), 0, stream, static_cast<const unsigned char*>(from),
         static_cast<unsigned char*>(to), bytes);
}

}  // namespace

void copy_by_kernel(const void* from, void* to, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return;
  const auto both = reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to);
  if (both % sizeof(uint4) == 0)
    copy_words<uint4>(from, to, bytes, stream);
  else if (both % sizeof(uint2) == 0)
    copy_words<uint2>(from, to, bytes, stream);
  else if (both % sizeof(unsigned) == 0)
    copy_words<unsigned>(from, to, bytes, stream);
  else
    copy_words<unsigned char>(from, to, bytes, stream);
}

}  // namespace stagecraft::cuda
