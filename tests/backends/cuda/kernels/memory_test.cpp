#include "backends/cuda/kernels/memory.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <doctest/doctest.h>

#include "backends/cuda/kernels/kernels.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"
#include "tests/backends/cpu/trial.hpp"
#include "tests/backends/cuda/kernels/gpu.hpp"
#ifdef STAGECRAFT_EMULATED_GPU
#include "tests/support/emulated_gpu/machine.hpp"
#endif

namespace stagecraft::memory_test {
using test::Gpu;

namespace {

struct Piece {
  char* data;
  std::size_t bytes;
};

bool apart(const std::vector<Piece>& pieces, const Piece& p) {
  return std::all_of(pieces.begin(), pieces.end(), [&](const Piece& other) {
    return p.data + p.bytes <= other.data || other.data + other.bytes <= p.data;
  });
}

/// Places of 2000 allocations, some released between them, counted from the first.
std::vector<std::ptrdiff_t> places(cuda::Memory& memory, std::size_t max_bytes) {
  Rng rng(5, "memory");
  std::vector<Piece> pieces;
  std::vector<std::ptrdiff_t> offsets;
  char* const first = static_cast<char*>(memory.allocate(1));
  for (int i = 0; i < 2000; ++i) {
    const auto bytes = static_cast<std::size_t>(rng.integer(0, static_cast<int>(max_bytes)));
    const Piece p{static_cast<char*>(memory.allocate(bytes)), bytes};
    CHECK(apart(pieces, p));
    CHECK(reinterpret_cast<std::uintptr_t>(p.data) % 256 == 0);
    pieces.push_back(p);
    offsets.push_back(p.data - first);
    while (pieces.size() > 40) {
      std::swap(pieces[rng.integer(0, 40)], pieces.back());
      memory.release(pieces.back().data, pieces.back().bytes);
      pieces.pop_back();
    }
  }
  for (const Piece& p : pieces) memory.release(p.data, p.bytes);
  memory.release(first, 1);
  CHECK(memory.in_use() == 0);
  return offsets;
}

}  // namespace

TEST_CASE("pieces do not overlap, come back, and lie at the same places for the same calls") {
  const Gpu gpu(0);
  cuda::Memory memory(gpu.stream()), other(gpu.stream());
  const auto first = places(memory, 20000);
  const std::size_t reserved = memory.reserved();
  CHECK(reserved == 2U << 20U);  // 41 pieces of 20 kB fit into the first block.
  CHECK(places(memory, 20000) == first);
  CHECK(places(other, 20000) == first);
  CHECK(memory.reserved() == reserved);
}

TEST_CASE("memory that a GPU does not have is refused, with what it has") {
  const Gpu gpu(0);
  cuda::Memory memory(gpu.stream());
  CHECK_THROWS_WITH_AS(memory.allocate(std::size_t{1} << 50U), doctest::Contains("are free"), BackendError);
  CHECK_THROWS_AS(memory.allocate(std::numeric_limits<std::size_t>::max()), BackendError);
  void* const block = memory.allocate(1000);
  CHECK(block != nullptr);
  CHECK(memory.in_use() == 1024);
  memory.release(block, 1000);
}

TEST_CASE_TEMPLATE("uploads, copies and sums of tensors arrive in order", T, float, double) {
  Gpu gpu(sizeof(T));
  real::Kernels& kernels = gpu.kernels();
  constexpr std::size_t count = 20000, tensors = 60;
  std::vector<void*> data;
  for (std::size_t t = 0; t < tensors; ++t) {
    data.push_back(kernels.allocate(count * sizeof(T)));
    kernels.upload(std::vector<double>(count, static_cast<double>(t)), data.back());
  }
  void* const sum = kernels.allocate(count * sizeof(T));
  kernels.zero(sum, count * sizeof(T));
  const real::Tensor to{sum, 1, count};
  for (void* const from : data) kernels.add({from, 1, count}, to);
  kernels.scale(2, to);
  kernels.copy(sum, data[0], count * sizeof(T));
#ifdef STAGECRAFT_EMULATED_GPU
  CHECK(!emulated_gpu::state().idle());  // No call waited.
#endif
  std::vector<double> downloaded(count);
  kernels.download(data[0], downloaded);
  CHECK(downloaded == std::vector<double>(count, 2.0 * tensors * (tensors - 1) / 2));  // Twice 0 + 1 + ... + 59.
  for (void* const block : data) kernels.release(block, count * sizeof(T));
  kernels.release(sum, count * sizeof(T));
}

TEST_CASE("with little memory of the host, copies wait for those before them") {
  const Gpu gpu(0);
  cuda::Memory memory(gpu.stream());
  cuda::Staging staging(gpu.stream(), std::size_t{256} << 10U);
  for (const std::size_t bytes : {std::size_t{1000}, std::size_t{100000}, std::size_t{500000}}) {
    std::vector<char*> data;
    for (int i = 0; i < 20; ++i) {
      data.push_back(static_cast<char*>(memory.allocate(bytes)));
      staging.upload(bytes, data.back(), [&](void* to) { std::memset(to, i, bytes); });
    }
    for (int i = 0; i < 20; ++i) {
      char* const from = data[i];
      std::vector<char> downloaded(bytes);
      staging.download(bytes, from, [&](const void* read) { std::memcpy(downloaded.data(), read, bytes); });
      CHECK(downloaded == std::vector<char>(bytes, static_cast<char>(i)));
      memory.release(from, bytes);
    }
  }
}

TEST_CASE("a kernel copies all bytes and no others, however the ends are aligned") {
  const Gpu gpu(0);
  constexpr std::size_t kRoom = 300000;
  void *from = nullptr, *to = nullptr;
  cuda::check(cudaMalloc(&from, kRoom), "cudaMalloc");
  cuda::check(cudaMalloc(&to, kRoom), "cudaMalloc");
  std::vector<unsigned char> numbers(kRoom), copied(kRoom);
  for (std::size_t i = 0; i < kRoom; ++i) numbers[i] = static_cast<unsigned char>(i % 251);
  cuda::check(cudaMemcpy(from, numbers.data(), kRoom, cudaMemcpyHostToDevice), "cudaMemcpy");
  for (const std::size_t bytes : {0UL, 1UL, 15UL, 16UL, 17UL, 4096UL, 8192UL * 16 + 7, kRoom - 32})
    for (const auto& [skip, over] : {std::pair{0UL, 0UL}, {16UL, 0UL}, {8UL, 8UL}, {4UL, 12UL}, {3UL, 16UL}}) {
      cuda::check(cudaMemset(to, 255, kRoom), "cudaMemset");
      cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      cuda::copy_by_kernel(static_cast<char*>(from) + skip, static_cast<char*>(to) + over, bytes, gpu.stream());
      cuda::check(cudaStreamSynchronize(gpu.stream()), "cudaStreamSynchronize");
      cuda::check(cudaMemcpy(copied.data(), to, kRoom, cudaMemcpyDeviceToHost), "cudaMemcpy");
      std::vector<unsigned char> expected(kRoom, 255);
      std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(skip), bytes,
                  expected.begin() + static_cast<std::ptrdiff_t>(over));
      CHECK(copied == expected);
    }
  cudaFree(from);
  cudaFree(to);
}

TEST_CASE("one number that is not finite is found") {
  for (const std::size_t width : test::kWidths)
    for (const int count : {1, 33, 1000}) {
      Gpu gpu(width);
      real::Kernels& kernels = gpu.kernels();
      const auto size = static_cast<std::size_t>(count);
      void* const data = kernels.allocate(size * width);
      std::vector<double> numbers(size, 1e30);
      kernels.upload(numbers, data);
      CHECK(kernels.finite({data, 1, count}));
      for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
        numbers.back() = bad;
        kernels.upload(numbers, data);
        CHECK(!kernels.finite({data, 1, count}));
      }
      kernels.release(data, size * width);
    }
}

}  // namespace stagecraft::memory_test
