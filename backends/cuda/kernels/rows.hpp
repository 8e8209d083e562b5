#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "backends/cuda/kernels/launch.hpp"
#include "backends/cuda/kernels/operations.hpp"
#include "backends/cuda/kernels/pack.hpp"
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

constexpr unsigned kLanes = 32, kWarps = 8;

/// The sum over the lanes of a warp, in the same order in each of them, so all get the same bits.
template <class T>
__device__ T warp_sum(T mine) {
  for (unsigned mask = kLanes / 2; mask > 0; mask /= 2) mine += from_lane(mine, mask);
  return mine;
}

constexpr unsigned kAcross = 32, kDown = 16;
constexpr int kRowsEach = 256;  ///< Rows that a block sums. It is fixed, so that sums depend on nothing but sizes.

/// Sums of columns and where they are added.
template <class T, int kSums>
struct ColumnSums {
  T* to[kSums];
};

/// Block (x, y) sums rows of chunk y: thread (c, d) has rows d, d + kDown, and so on. value(row, c, sums) adds its
/// terms. With one chunk the sums are added to the results, else they are written to `partial`, by chunk and result.
template <class T, int kSums, class Value>
__global__ void column_sums_kernel(int rows, int columns, Value value, ColumnSums<T, kSums> to, T* partial) {
  const auto shared = shared_memory<T>();
  const int column = static_cast<int>(blockIdx.x * kAcross + threadIdx.x);
  const int first = static_cast<int>(blockIdx.y) * kRowsEach;
  const int last = first + kRowsEach < rows ? first + kRowsEach : rows;
  T mine[kSums] = {};
  if (column < columns)
    for (int row = first + static_cast<int>(threadIdx.y); row < last; row += kDown) value(row, column, mine);
  constexpr unsigned kThreads = kAcross * kDown;
  const unsigned at = threadIdx.y * kAcross + threadIdx.x;
  for (int n = 0; n < kSums; ++n) shared[n * kThreads + at] = mine[n];
  for (unsigned half = kDown / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half)
      for (int n = 0; n < kSums; ++n) shared[n * kThreads + at] += shared[n * kThreads + at + half * kAcross];
  }
  if (threadIdx.y != 0 || column >= columns) return;
  for (int n = 0; n < kSums; ++n)
    if (partial)
      partial[(static_cast<std::int64_t>(blockIdx.y) * kSums + n) * columns + column] = shared[n * kThreads + at];
    else
      to.to[n][column] += shared[n * kThreads + at];
}

/// Adds what the chunks of rows came to, in their order.
template <class T, int kSums>
__global__ void chunk_sums_kernel(int chunks, int columns, const T* partial, ColumnSums<T, kSums> to) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (column >= columns) return;
  for (int n = 0; n < kSums; ++n) {
    T sum{};
    for (int chunk = 0; chunk < chunks; ++chunk)
      sum += partial[(static_cast<std::int64_t>(chunk) * kSums + n) * columns + column];
    to.to[n][column] += sum;
  }
}

/// to[n][c] += the sum of term n of value(row, c) over the rows, in two steps where there are many rows: blocks for the
/// columns alone would leave most multiprocessors without work.
template <class T, int kSums, class Value>
void add_column_sums(const Device& device, std::int64_t rows, std::int64_t columns, const Value& value,
                     const ColumnSums<T, kSums>& to) {
  if (rows == 0 || columns == 0) return;
  const auto chunks = static_cast<unsigned>((rows + kRowsEach - 1) / kRowsEach);
  const dim3 blocks(static_cast<unsigned>((columns + kAcross - 1) / kAcross), chunks);
  const Scratch<T> partial(*device.memory, chunks > 1 ? chunks * kSums * columns : 0);
  launch(column_sums_kernel<T, kSums, Value>, blocks, dim3(kAcross, kDown), kSums * sizeof(T) * kAcross * kDown,
         device.stream, static_cast<int>(rows), static_cast<int>(columns), value, to,
         chunks > 1 ? partial.data() : nullptr);
  if (chunks == 1) return;
  launch(chunk_sums_kernel<T, kSums>, dim3(static_cast<unsigned>((columns + 127) / 128)), dim3(128), 0, device.stream,
         static_cast<int>(chunks), static_cast<int>(columns), partial.data(), to);
}

/// Copies a row, such as biases, to each row of a matrix.
template <class T>
struct SpreadRow {
  const T* row;
  std::int64_t columns;
  T* to;
  __device__ void operator()(std::int64_t r, std::int64_t column) const { to[r * columns + column] = row[column]; }
};

/// The term of add_column_sums() that is a number of a matrix.
template <class T>
struct AddNumber {
  const T* from;
  std::int64_t columns;
  __device__ void operator()(std::int64_t row, int column, Wide<T>* sums) const {
    sums[0] += from[row * columns + column];
  }
};

}  // namespace stagecraft::cuda
