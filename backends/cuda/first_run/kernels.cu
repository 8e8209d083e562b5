// Small kernels that the checks of first_run launch: they keep multiprocessors busy, copy, fill memory, and note the
// multiprocessor or the clock.

#include "backends/cuda/first_run/kernels.hpp"

#include <cuda_bf16.h>

#include "backends/cuda/driver.hpp"

static_assert(__cplusplus >= 202002L, "nvcc was not told the language");

namespace stagecraft::cuda::first_run {
namespace {

__device__ unsigned multiprocessor() {
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

__device__ unsigned long long shared_clock() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

__device__ void wait_cycles(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

__global__ void nothing_kernel() {}

__global__ void note_kernel(unsigned* counts, long long cycles) {
  if (threadIdx.x == 0) atomicAdd(&counts[multiprocessor()], 1U);
  wait_cycles(cycles);
}

__global__ void spin_kernel(long long cycles, unsigned* flag, unsigned value) {
  wait_cycles(cycles);
  if (flag && blockIdx.x == 0 && threadIdx.x == 0) *flag = value;
}

__global__ void read_flag_kernel(const unsigned* flag, unsigned* seen) { *seen = *flag; }

__global__ void copy_kernel(const uint4* from, uint4* to, std::size_t count, int times) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (int t = 0; t < times; ++t)
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
      __stcs(to + i, __ldcs(from + i));
}

/// Copies through the caches, unlike copy_kernel(), for data that is meant to stay there.
__global__ void cached_copy_kernel(const uint4* from, uint4* to, std::size_t count, int times) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (int t = 0; t < times; ++t)
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
      to[i] = __ldcg(from + i);
}

__device__ std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352dU;
  x = (x ^ (x >> 15)) * 0x846ca68bU;
  return x ^ (x >> 16);
}

__global__ void fill_kernel(__nv_bfloat16* to, std::size_t count, std::uint32_t seed) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const std::uint32_t a = mixed(static_cast<std::uint32_t>(i) + seed), b = mixed(a + 0x9e3779b9U);
    const float u = (static_cast<float>(a) + 1.0F) * 2.3283064e-10F, v = static_cast<float>(b) * 2.3283064e-10F;
    to[i] = __float2bfloat16(sqrtf(-2.0F * logf(fmaxf(u, 1e-12F))) * cospif(2.0F * v));
  }
}

__global__ void clock_kernel(unsigned long long* readings, int count) {
  for (int i = 0; i < count; ++i) readings[i] = shared_clock();
}

void launched(const char* kernel) { check(cudaGetLastError(), kernel); }

}  // namespace

void nothing(cudaStream_t stream) {
  nothing_kernel<<<1, 32, 0, stream>>>();
  launched("nothing");
}

void note_multiprocessor(int blocks, unsigned* counts, long long cycles, cudaStream_t stream) {
  note_kernel<<<blocks, 128, 0, stream>>>(counts, cycles);
  launched("note_multiprocessor");
}

void spin(int blocks, long long cycles, unsigned* flag, unsigned value, cudaStream_t stream) {
  spin_kernel<<<blocks, 128, 0, stream>>>(cycles, flag, value);
  launched("spin");
}

void read_flag(const unsigned* flag, unsigned* seen, cudaStream_t stream) {
  read_flag_kernel<<<1, 1, 0, stream>>>(flag, seen);
  launched("read_flag");
}

void copy(const void* from, void* to, std::size_t bytes, int times, int blocks, cudaStream_t stream) {
  const std::size_t count = bytes / sizeof(uint4);
  if (times > 1)
    cached_copy_kernel<<<blocks, 512, 0, stream>>>(static_cast<const uint4*>(from), static_cast<uint4*>(to), count,
                                                   times);
  else
    copy_kernel<<<blocks, 512, 0, stream>>>(static_cast<const uint4*>(from), static_cast<uint4*>(to), count, times);
  launched("copy");
}

void fill_bfloat16(void* to, std::size_t count, std::uint32_t seed, cudaStream_t stream) {
  fill_kernel<<<1024, 256, 0, stream>>>(static_cast<__nv_bfloat16*>(to), count, seed);
  launched("fill_bfloat16");
}

void read_clock(unsigned long long* readings, int count, cudaStream_t stream) {
  clock_kernel<<<1, 1, 0, stream>>>(readings, count);
  launched("read_clock");
}

}  // namespace stagecraft::cuda::first_run
