#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/model/tensor_operation.hpp"

// Tensor functions on the numbers of one sample, or of all samples of a micro-batch, and their gradients.

namespace stagecraft::cpu {

/// A tensor operation with its arrays. The gradient has those that reads_operands() and reads_output() name; others may
/// be null, and so may weights where the gradient is their own.
template <class T>
struct TensorCall {
  const TensorOperation& op;
  std::span<const T* const> operands;
  const T* output = nullptr;
  const T* d_output = nullptr;
  std::int64_t samples = 1;  ///< More than one where TensorKernels::joins_samples.
};

/// `gradient` adds the gradient of one operand to `d_operand`; null: no operand has one.
template <class T>
struct TensorKernels {
  void (*value)(const TensorCall<T>&, T* output) = nullptr;
  void (*gradient)(const TensorCall<T>&, std::size_t operand, T* d_operand) = nullptr;
  bool joins_samples = false;  ///< One call is for all samples, which follow each other; else for one.
};

/// Each family gives null kernels for functions of the others.
template <class T>
TensorKernels<T> arithmetic_kernels(TensorFunction);  ///< Elementwise, of one operand to three.
template <class T>
TensorKernels<T> arrangement_kernels(TensorFunction);  ///< View, Select, Concat.
template <class T>
TensorKernels<T> sum_kernels(TensorFunction);  ///< Product, Sum, Mean.
template <class T>
TensorKernels<T> row_kernels(TensorFunction);  ///< Softmax, Normalize, Scale, BatchNorm.
template <class T>
TensorKernels<T> window_kernels(TensorFunction);  ///< Convolution, MaxPool, AveragePool.

/// Calls visit(i, places) for the numbers i of an array of this shape, in order. `places` are where they lie in N
/// arrays with these strides.
template <std::size_t N, class Visit>
void walk(const TensorShape& shape, const std::array<TensorShape, N>& strides, Visit&& visit) {
  std::array<std::int64_t, N> row{};
  if (shape.empty()) return visit(std::int64_t{0}, row);
  const std::int64_t count = numbers_of(shape);
  TensorShape index(shape.size(), 0);
  for (std::int64_t i = 0; i < count;) {
    std::array<std::int64_t, N> places = row;
    for (const std::int64_t end = i + shape.back(); i < end; ++i) {
      visit(i, places);
      for (std::size_t n = 0; n < N; ++n) places[n] += strides[n].back();
    }
    for (std::size_t d = shape.size() - 1; d-- > 0;) {
      for (std::size_t n = 0; n < N; ++n) row[n] += strides[n][d];
      if (++index[d] < shape[d]) break;
      for (std::size_t n = 0; n < N; ++n) row[n] -= strides[n][d] * shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace stagecraft::cpu
