#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "backends/cuda/kernels/launch.hpp"
#include "backends/cuda/kernels/operations.hpp"
#include "backends/cuda/kernels/pack.hpp"

/// One thread for a number, or for the numbers that 16 bytes hold: what happens to a number never depends on who does
/// it.
namespace stagecraft::cuda {

template <class Step>
__global__ void each_kernel(std::int64_t count, Step step) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads)
    step(i);
}

constexpr unsigned kThreadsOfEach = 256;

/// Blocks for this number of threads, as far as multiprocessors have work for them.
inline dim3 blocks_for(const Device& device, std::int64_t threads) {
  constexpr std::int64_t blocks_each = 16;
  const std::int64_t max_blocks = blocks_each * (device.multiprocessors > 0 ? device.multiprocessors : 128);
  return {static_cast<unsigned>(std::min((threads + kThreadsOfEach - 1) / kThreadsOfEach, max_blocks))};
}

/// step(i) for all i below `count`.
template <class Step>
void each(const Device& device, std::int64_t count, const Step& step) {
  if (count == 0) return;
  launch(each_kernel<Step>, blocks_for(device, count), dim3(kThreadsOfEach), 0, device.stream, count, step);
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

/// Writes numbers `i` to `i + kCount - 1` of a put(): a copy of `value` finds its numbers in packs, from index 0 on.
template <int kCount, class T, class Value, std::size_t... n>
__device__ void put_pack(std::int64_t i, bool add, T* to, Value value, std::index_sequence<n...>) {
  const auto arrays = value.arrays();
  const std::tuple places{std::get<n>(arrays)...};
  std::tuple packs{load<kCount>(std::get<n>(places) + i)...};
  ((std::get<n>(arrays) = std::get<n>(packs).numbers), ...);
  Pack<T, kCount> result;
  if (add) result = load<kCount>(to + i);
  for (int k = 0; k < kCount; ++k) result.numbers[k] = static_cast<T>(add ? result.numbers[k] + value(k) : value(k));
  store<kCount>(to + i, result);
  const auto write_back = [i]<class Number>(Number* place, const auto& pack) {
    if constexpr (!std::is_const_v<Number>) store<kCount>(place + i, pack);
  };
  (write_back(std::get<n>(places), std::get<n>(packs)), ...);
}

template <int kCount, class T, class Value>
__global__ void put_kernel(std::int64_t count, bool add, T* to, Value value) {
  constexpr std::make_index_sequence<std::tuple_size_v<decltype(value.arrays())>> numbers{};
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x, packs = count / kCount;
  const std::int64_t mine = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::int64_t p = mine; p < packs; p += threads) put_pack<kCount>(p * kCount, add, to, value, numbers);
  if (const std::int64_t last = packs * kCount + mine; last < count) put_pack<1>(last, add, to, value, numbers);
}

/// As many numbers as 16 bytes hold of the smallest type among T and the types of the arrays.
template <class T, class... Number>
constexpr int numbers_at_once(const std::tuple<Number*&...>*) {
  return 16 / static_cast<int>(std::min({sizeof(T), sizeof(Number)...}));
}

/// to[i] = value(i), or to[i] += value(i), rounded once. A value uses i only to find numbers in its arrays(), and
/// writes those that are not constant. 16 bytes are moved at once if all arrays are so aligned.
template <class T, class Value>
void put(const Device& device, bool add, std::int64_t count, T* to, Value value) {
  if (count == 0) return;
  constexpr int kCount = numbers_at_once<T>(static_cast<const decltype(value.arrays())*>(nullptr));
  const bool packed =
      std::apply([&](auto*... array) { return (is_aligned(to) && ... && is_aligned(array)); }, value.arrays());
  launch(packed ? put_kernel<kCount, T, Value> : put_kernel<1, T, Value>,
         blocks_for(device, packed ? (count + kCount - 1) / kCount : count), dim3(kThreadsOfEach), 0, device.stream,
         count, add, to, value);
}

/// The number at the same place of another tensor.
template <class T>
struct At {
  const T* from;
  __device__ Wide<T> operator()(std::int64_t i) const { return from[i]; }
  __host__ __device__ auto arrays() { return std::tie(from); }
};

}  // namespace stagecraft::cuda
