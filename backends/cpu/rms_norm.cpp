// RMS norm of each row: forward and gradients.

#include <cmath>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"

namespace stagecraft::cpu {
namespace {

constexpr double kEpsilon = 1e-5;

/// What one row keeps: x / r with r the root of the mean square, and 1 / r. A sample keeps all its rows of the first,
/// then the second.
template <class T>
struct SavedRow {
  T *normal, *inverse;
};

template <class T>
SavedRow<T> saved_row(const real::Call& call, std::int64_t row) {
  const std::int64_t rows = call.operation->rows, columns = call.operation->columns;
  T* const sample = numbers<T>(call.saved) + row / rows * (rows * columns + rows);
  return {sample + row % rows * columns, sample + rows * columns + row % rows};
}

template <class T>
void forward(const real::Call& call) {
  const std::int64_t columns = call.operation->columns;
  const T* const gamma = static_cast<const T*>(call.weights);
  for (std::int64_t row = 0; row < call.output.rows; ++row) {
    const T* const x = numbers<T>(call.inputs[0]) + row * columns;
    const T square = sum<T>(columns, [x](std::int64_t i) { return x[i] * x[i]; }) / static_cast<T>(columns);
    const T inverse = 1 / std::sqrt(square + static_cast<T>(kEpsilon));
    const SavedRow<T> keep = saved_row<T>(call, row);
    *keep.inverse = inverse;
    put(false, columns, keep.normal, [=](std::int64_t i) { return x[i] * inverse; });
    put(false, columns, numbers<T>(call.output) + row * columns,
        [=, normal = keep.normal](std::int64_t i) { return normal[i] * gamma[i]; });
  }
}

/// With g = d_output * gamma and n the normalized row: (g - n mean(g n)) / r.
template <class T>
void input_gradient(const real::Call& call, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                    MemoryPool&) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const std::int64_t columns = call.operation->columns;
  const T* const gamma = static_cast<const T*>(call.weights);
  for (std::int64_t row = 0; row < d_output.rows; ++row) {
    const T* const gradient = numbers<T>(d_output) + row * columns;
    const SavedRow<T> keep = saved_row<T>(call, row);
    const T *const normal = keep.normal, inverse = *keep.inverse;
    const T along =
        sum<T>(columns, [=](std::int64_t i) { return gradient[i] * gamma[i] * normal[i]; }) / static_cast<T>(columns);
    put(to.add, columns, numbers<T>(to.tensor) + row * columns,
        [=](std::int64_t i) { return inverse * (gradient[i] * gamma[i] - normal[i] * along); });
  }
}

template <class T>
void weight_gradient(const real::Call& call, const real::Tensor& d_output, void* d_weights) {
  const std::int64_t columns = call.operation->columns;
  for (std::int64_t row = 0; row < d_output.rows; ++row) {
    const T* const gradient = numbers<T>(d_output) + row * columns;
    const T* const normal = saved_row<T>(call, row).normal;
    put(true, columns, static_cast<T*>(d_weights), [=](std::int64_t i) { return gradient[i] * normal[i]; });
  }
}

}  // namespace

template <class T>
OperationKernels rms_norm_kernels() {
  return {forward<T>, input_gradient<T>, weight_gradient<T>};
}
template OperationKernels rms_norm_kernels<float>();
template OperationKernels rms_norm_kernels<double>();

}  // namespace stagecraft::cpu
