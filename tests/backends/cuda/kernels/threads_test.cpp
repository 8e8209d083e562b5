// The emulated threads themselves: would a kernel that is wrong be found?
#include <set>

#include <doctest/doctest.h>

#include "backends/cuda/kernels/launch.hpp"
#include "tests/backends/cuda/kernels/gpu.hpp"

namespace stagecraft::threads_test {
using emulated_gpu::Misuse;
using test::Gpu;

namespace {

/// Every thread hands its number to the next one.
__global__ void pass_on_kernel(bool with_barrier, int* to) {
  const auto shared = cuda::shared_memory<int>();
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (with_barrier) __syncthreads();
  to[blockIdx.x * blockDim.x + threadIdx.x] = shared[(threadIdx.x + 1) % blockDim.x];
}

__global__ void half_of_a_barrier_kernel() {
  if (threadIdx.x % 2 == 0) __syncthreads();
}

__global__ void beyond_kernel(unsigned at) { cuda::shared_memory<int>()[at] = 1; }

__global__ void place_kernel(unsigned* to) {
  const unsigned block = blockIdx.x + gridDim.x * blockIdx.y;
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  to[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}

template <class Launch>
std::vector<int> numbers_of(std::size_t count, std::uint64_t seed, Launch&& launch) {
  const Gpu gpu(0, seed);
  void* data = nullptr;
  cuda::check(cudaMalloc(&data, count * sizeof(int)), "cudaMalloc");
  launch(gpu.stream(), data);
  std::vector<int> numbers(count);
  cuda::check(cudaMemcpyAsync(numbers.data(), data, count * sizeof(int), cudaMemcpyDeviceToHost, gpu.stream()), "copy");
  cuda::check(cudaStreamSynchronize(gpu.stream()), "waiting");
  cudaFree(data);
  return numbers;
}

std::vector<int> passed_on(bool with_barrier, std::uint64_t seed) {
  return numbers_of(96, seed, [&](cudaStream_t stream, void* data) {
    cuda::launch(pass_on_kernel, dim3(3), dim3(32), 32 * sizeof(int), stream, with_barrier, static_cast<int*>(data));
  });
}

template <class Launch>
void run_alone(Launch&& launch) {
  const Gpu gpu(0);
  launch(gpu.stream());
  cuda::check(cudaStreamSynchronize(gpu.stream()), "waiting");
}

}  // namespace

TEST_CASE("with its barrier a kernel gives the same in every order, and without it does not") {
  std::set<std::vector<int>> with, without;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    with.insert(passed_on(true, seed));
    without.insert(passed_on(false, seed));
  }
  REQUIRE(with.size() == 1);
  for (int i = 0; i < 96; ++i) CHECK((*with.begin())[i] == (i + 1) % 32);
  CHECK(without.size() == 10);
}

TEST_CASE("every thread of every block runs once, and knows where it is") {
  const auto numbers = numbers_of(6 * 24, 3, [](cudaStream_t stream, void* data) {
    cuda::launch(place_kernel, dim3(3, 2), dim3(4, 3, 2), 0, stream, static_cast<unsigned*>(data));
  });
  for (int i = 0; i < 6 * 24; ++i) CHECK(numbers[i] == i / 24 * 1000 + i % 24);
}

TEST_CASE("what would hang or break a GPU is found") {
  CHECK_THROWS_WITH_AS(
      run_alone([](cudaStream_t stream) { cuda::launch(half_of_a_barrier_kernel, dim3(1), dim3(64), 0, stream); }),
      doctest::Contains("32 of 64 threads"), Misuse);
  CHECK_THROWS_WITH_AS(run_alone([](cudaStream_t stream) {
                         cuda::launch(beyond_kernel, dim3(1), dim3(1), 4 * sizeof(int), stream, 4U);
                       }),
                       doctest::Contains("shared memory"), Misuse);
  CHECK_NOTHROW(run_alone(
      [](cudaStream_t stream) { cuda::launch(beyond_kernel, dim3(1), dim3(1), 4 * sizeof(int), stream, 3U); }));
  CHECK_THROWS_WITH_AS(
      run_alone([](cudaStream_t stream) { cuda::launch(beyond_kernel, dim3(1), dim3(2048), 16, stream, 0U); }),
      doctest::Contains("2048 threads"), Misuse);
}

}  // namespace stagecraft::threads_test
