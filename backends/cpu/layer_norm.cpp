// Layer norm of each row: forward and gradients.

#include <cmath>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"

namespace stagecraft::cpu {
namespace {

constexpr double kEpsilon = 1e-5;

/// What one row keeps: (x - mean) / deviation, and 1 / deviation. A sample keeps all its rows of the first, then the
/// second.
template <class T>
struct SavedNorm {
  T *normal, *inverse;
};

template <class T>
SavedNorm<T> saved_norm(const real::Call& call, std::int64_t row) {
  const std::int64_t rows = call.operation->rows, columns = call.operation->columns;
  T* const sample = numbers<T>(call.saved) + row / rows * (rows * columns + rows);
  return {sample + row % rows * columns, sample + rows * columns + row % rows};
}

template <class T>
void forward(const real::Call& call) {
  const std::int64_t columns = call.operation->columns;
  const T* const gamma = static_cast<const T*>(call.weights);
  const T* const beta = gamma + real::second_block(*call.operation, sizeof(T));
  for (std::int64_t row = 0; row < call.output.rows; ++row) {
    const T* const x = numbers<T>(call.inputs[0]) + row * columns;
    const auto count = static_cast<T>(columns);
    const T mean = sum<T>(columns, [x](std::int64_t i) { return x[i]; }) / count;
    const T variance = sum<T>(columns, [x, mean](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / count;
    const T inverse = 1 / std::sqrt(variance + static_cast<T>(kEpsilon));
    const SavedNorm<T> keep = saved_norm<T>(call, row);
    *keep.inverse = inverse;
    put(false, columns, keep.normal, [=](std::int64_t i) { return (x[i] - mean) * inverse; });
    put(false, columns, numbers<T>(call.output) + row * columns,
        [=, normal = keep.normal](std::int64_t i) { return normal[i] * gamma[i] + beta[i]; });
  }
}

/// With g = d_output * gamma and n the normalised row: (g - mean(g) - n mean(g n)) / deviation.
template <class T>
void input_gradient(const real::Call& call, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                    MemoryPool&) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const std::int64_t columns = call.operation->columns;
  const T* const gamma = static_cast<const T*>(call.weights);
  for (std::int64_t row = 0; row < d_output.rows; ++row) {
    const T* const gradient = numbers<T>(d_output) + row * columns;
    const SavedNorm<T> keep = saved_norm<T>(call, row);
    const T *const normal = keep.normal, inverse = *keep.inverse;
    const auto count = static_cast<T>(columns);
    const T mean = sum<T>(columns, [=](std::int64_t i) { return gradient[i] * gamma[i]; }) / count;
    const T along = sum<T>(columns, [=](std::int64_t i) { return gradient[i] * gamma[i] * normal[i]; }) / count;
    put(to.add, columns, numbers<T>(to.tensor) + row * columns,
        [=](std::int64_t i) { return inverse * (gradient[i] * gamma[i] - mean - normal[i] * along); });
  }
}

template <class T>
void weight_gradient(const real::Call& call, const real::Tensor& d_output, void* d_weights) {
  const std::int64_t columns = call.operation->columns;
  T* const d_gamma = static_cast<T*>(d_weights);
  T* const d_beta = d_gamma + real::second_block(*call.operation, sizeof(T));
  for (std::int64_t row = 0; row < d_output.rows; ++row) {
    const T* const gradient = numbers<T>(d_output) + row * columns;
    const T* const normal = saved_norm<T>(call, row).normal;
    put(true, columns, d_gamma, [=](std::int64_t i) { return gradient[i] * normal[i]; });
    put(true, columns, d_beta, [=](std::int64_t i) { return gradient[i]; });
  }
}

}  // namespace

template <class T>
OperationKernels layer_norm_kernels() {
  return {forward<T>, input_gradient<T>, weight_gradient<T>};
}
template OperationKernels layer_norm_kernels<float>();
template OperationKernels layer_norm_kernels<double>();

}  // namespace stagecraft::cpu
