#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

/// Small kernels that show what a device does. All only enqueue.
namespace stagecraft::cuda::first_run {

void nothing(cudaStream_t);
/// Each block increments the counter of its multiprocessor, and stays for `cycles` clock cycles.
void note_multiprocessor(int blocks, unsigned* counts, long long cycles, cudaStream_t);
/// Keeps `blocks` blocks busy for `cycles` clock cycles; then writes `value` to `flag` unless it is null.
void spin(int blocks, long long cycles, unsigned* flag, unsigned value, cudaStream_t);
/// Copies the current value of `flag` to `seen`.
void read_flag(const unsigned* flag, unsigned* seen, cudaStream_t);
/// Copies `bytes`, a multiple of 16, `times` times with `blocks` blocks.
void copy(const void* from, void* to, std::size_t bytes, int times, int blocks, cudaStream_t);
/// Random normal numbers of the type bfloat16: zeros would be too quick.
void fill_bfloat16(void* to, std::size_t count, std::uint32_t seed, cudaStream_t);
/// Readings of the clock that all multiprocessors share, as fast as one thread can take them.
void read_clock(unsigned long long* readings, int count, cudaStream_t);

}  // namespace stagecraft::cuda::first_run
