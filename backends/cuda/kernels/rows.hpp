#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "backends/cuda/kernels/launch.hpp"
#include "backends/cuda/kernels/operations.hpp"
#include "backends/real/formulas/elementary.hpp"

/// Sums in an order that depends on nothing but how many numbers there are.
namespace stagecraft::cuda {

/// Threads of a block for a row of `columns` numbers: a power of two.
inline unsigned threads_for(std::int64_t columns) {
  return static_cast<unsigned>(std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(columns, 32, 256))));
}

template <class T>
struct Plus {
  __device__ T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct Larger {
  __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};

/// One number of each thread of the block, joined by halves; every thread gets the result. `shared` has room for one
/// number a thread.
template <class T, class Shared, class Join>
__device__ T joined(T mine, Shared shared, Join join) {
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] = join(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  const T result = shared[0];
  __syncthreads();
  return result;
}

/// The sum of value(i) over a row; thread t has t, t + threads, and so on.
template <class T, class Shared, class Value>
__device__ T row_sum(std::int64_t count, Shared shared, Value value) {
  T mine{};
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) mine += value(i);
  return joined(mine, shared, Plus<T>{});
}

template <class T>
struct SoftmaxParts {
  T largest, sum;
};

/// Writes exp(factor x - largest); softmax(factor x) is that over the sum. `to` may be `x`.
template <class From, class T, class Shared>
__device__ SoftmaxParts<T> softmax_exponentials(std::int64_t count, const From* x, T factor, T* to, Shared shared) {
  T largest = -std::numeric_limits<T>::infinity();
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) largest = Larger<T>{}(largest, factor * x[i]);
  largest = joined(largest, shared, Larger<T>{});
  T sum{};
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    to[i] = real::exponential(factor * x[i] - largest);
    sum += to[i];
  }
  return {largest, joined(sum, shared, Plus<T>{})};
}

constexpr unsigned kAcross = 32, kDown = 16;

/// to[c] += sum of value(row, c) over the rows: thread (c, d) has rows d, d + kDown, and so on.
template <class T, class Value>
__global__ void column_sums_kernel(std::int64_t rows, std::int64_t columns, Value value, T* to) {
  const auto shared = shared_memory<T>();
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kAcross + threadIdx.x;
  T mine{};
  if (column < columns)
    for (std::int64_t row = threadIdx.y; row < rows; row += kDown) mine += value(row, column);
  shared[threadIdx.y * kAcross + threadIdx.x] = mine;
  for (unsigned half = kDown / 2; half > 0; half /= 2) {
    __syncthreads();
    const unsigned at = threadIdx.y * kAcross + threadIdx.x;
    if (threadIdx.y < half) shared[at] += shared[at + half * kAcross];
  }
  if (threadIdx.y == 0 && column < columns) to[column] += shared[threadIdx.x];
}

template <class T, class Value>
void add_column_sums(const Device& device, std::int64_t rows, std::int64_t columns, const Value& value, T* to) {
  const auto blocks = static_cast<unsigned>((columns + kAcross - 1) / kAcross);
  launch(column_sums_kernel<T, Value>, dim3(blocks), dim3(kAcross, kDown), sizeof(T) * kAcross * kDown, device.stream,
         rows, columns, value, to);
}

}  // namespace stagecraft::cuda
