// What backends/cuda/first_run/kernels.cu does, on a GPU that the CPU plays.
#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backends/cuda/first_run/kernels.hpp"
#include "tests/support/emulated_gpu/machine.hpp"

namespace stagecraft::cuda::first_run {
namespace {

constexpr double kCyclesPerSecond = 1.5e9, kBytesPerSecond = 1e12;
constexpr unsigned long long kTick = 32;  // Nanoseconds.

void require_there(const void* data, std::size_t bytes, const char* what) {
  if (!emulated_gpu::on_device(data, bytes))
    throw emulated_gpu::Misuse(std::string(what) + " goes beyond the memory of the device");
}

}  // namespace

void nothing(cudaStream_t stream) {
  emulated_gpu::enqueue(stream, [] {});
}

void note_multiprocessor(int blocks, unsigned* counts, long long cycles, cudaStream_t stream) {
  const std::vector<unsigned> numbers = emulated_gpu::multiprocessors_of(stream);
  emulated_gpu::enqueue(
      stream,
      [=] {
        require_there(counts, (numbers.back() + 1) * sizeof *counts, "a count");
        for (int b = 0; b < blocks; ++b) ++counts[numbers[static_cast<std::size_t>(b) % numbers.size()]];
      },
      static_cast<double>(cycles) / kCyclesPerSecond);
}

void spin(int, long long cycles, unsigned* flag, unsigned value, cudaStream_t stream) {
  emulated_gpu::enqueue(
      stream,
      [=] {
        if (!flag) return;
        require_there(flag, sizeof *flag, "a flag");
        *flag = value;
      },
      static_cast<double>(cycles) / kCyclesPerSecond);
}

void read_flag(const unsigned* flag, unsigned* seen, cudaStream_t stream) {
  emulated_gpu::enqueue(stream, [=] {
    require_there(flag, sizeof *flag, "a flag");
    require_there(seen, sizeof *seen, "what was seen");
    *seen = *flag;
  });
}

void copy(const void* from, void* to, std::size_t bytes, int times, int, cudaStream_t stream) {
  emulated_gpu::enqueue(
      stream,
      [=] {
        require_there(from, bytes, "a copy");
        require_there(to, bytes, "a copy");
        std::memcpy(to, from, bytes);
      },
      1e-6 + static_cast<double>(bytes) * times / kBytesPerSecond);
}

void fill_bfloat16(void* to, std::size_t count, std::uint32_t seed, cudaStream_t stream) {
  emulated_gpu::enqueue(stream, [=] {
    require_there(to, 2 * count, "filling");
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    auto* const numbers = static_cast<std::uint16_t*>(to);
    for (std::size_t i = 0; i < count; ++i)
      numbers[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random)) >> 16U);
  });
}

void read_clock(unsigned long long* readings, int count, cudaStream_t stream) {
  emulated_gpu::enqueue(stream, [=] {
    require_there(readings, static_cast<std::size_t>(count) * sizeof *readings, "the clock");
    for (int i = 0; i < count; ++i) readings[i] = kTick * static_cast<unsigned long long>(i);
  });
}

}  // namespace stagecraft::cuda::first_run
