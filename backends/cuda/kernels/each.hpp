#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cuda/kernels/launch.hpp"
#include "backends/cuda/kernels/operations.hpp"

/// One thread for a number: what happens to a number never depends on who does it.
namespace stagecraft::cuda {

template <class Step>
__global__ void each_kernel(std::int64_t count, Step step) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads)
    step(i);
}

/// step(i) for all i below `count`.
template <class Step>
void each(const Device& device, std::int64_t count, const Step& step) {
  if (count == 0) return;
  constexpr std::int64_t threads = 256, blocks_each = 16;
  const std::int64_t max_blocks = blocks_each * (device.multiprocessors > 0 ? device.multiprocessors : 128);
  const auto blocks = static_cast<unsigned>(std::min((count + threads - 1) / threads, max_blocks));
  launch(each_kernel<Step>, dim3(blocks), dim3(threads), 0, device.stream, count, step);
}

template <class Step>
__global__ void each_in_rows_kernel(std::int64_t rows, std::int64_t columns, Step step) {
  const std::int64_t down = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  const std::int64_t across = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; row < rows; row += down)
    for (std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; column < columns;
         column += across)
      step(row, column);
}

/// step(row, column) for all of them: no thread divides to know where it is.
template <class Step>
void each_in_rows(const Device& device, std::int64_t rows, std::int64_t columns, const Step& step) {
  if (rows == 0 || columns == 0) return;
  const unsigned across = columns > 128 ? 256 : 32, down = 256 / across;
  const auto blocks = [](std::int64_t count, unsigned each, std::int64_t max_blocks) {
    return static_cast<unsigned>(std::min((count + each - 1) / each, max_blocks));
  };
  launch(each_in_rows_kernel<Step>, dim3(blocks(columns, across, 64), blocks(rows, down, 4096)), dim3(across, down), 0,
         device.stream, rows, columns, step);
}

/// to[i] = value(i), or to[i] += value(i), rounded once.
template <class T, class Value>
struct Put {
  bool add;
  T* to;
  Value value;
  __device__ void operator()(std::int64_t i) const { to[i] = static_cast<T>(add ? to[i] + value(i) : value(i)); }
};

template <class T, class Value>
void put(const Device& device, bool add, std::int64_t count, T* to, const Value& value) {
  each(device, count, Put<T, Value>{add, to, value});
}

/// The number at the same place of another tensor.
template <class T>
struct At {
  const T* from;
  __device__ Wide<T> operator()(std::int64_t i) const { return from[i]; }
};

}  // namespace stagecraft::cuda
