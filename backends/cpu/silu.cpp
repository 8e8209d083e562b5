#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"
#include "backends/real/formulas/elementary.hpp"

namespace stagecraft::cpu {
namespace {

template <class T>
[[gnu::always_inline]] inline T silu(T x) {
  return x * real::logistic(x);
}

/// With s the logistic function: s(x) (1 + x (1 - s(x))).
template <class T>
[[gnu::always_inline]] inline T silu_slope(T x) {
  const T s = real::logistic(x);
  return s * (1 + x * (1 - s));
}

template <class T>
void forward(const real::Call& call) {
  const T* const x = numbers<T>(call.inputs[0]);
  put(false, call.output.size(), numbers<T>(call.output), [x](std::int64_t i) { return silu(x[i]); });
}

template <class T>
void input_gradient(const real::Call& call, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                    MemoryPool&) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const T *const x = numbers<T>(call.inputs[0]), *const gradient = numbers<T>(d_output);
  put(to.add, d_output.size(), numbers<T>(to.tensor), [=](std::int64_t i) { return gradient[i] * silu_slope(x[i]); });
}

/// A row of the input holds the gate, then the values.
template <class T>
void gated_forward(const real::Call& call) {
  const std::int64_t columns = call.operation->columns;
  for (std::int64_t row = 0; row < call.output.rows; ++row) {
    const T *const gate = numbers<T>(call.inputs[0]) + row * 2 * columns, *const value = gate + columns;
    put(false, columns, numbers<T>(call.output) + row * columns,
        [=](std::int64_t i) { return silu(gate[i]) * value[i]; });
  }
}

template <class T>
void gated_input_gradient(const real::Call& call, const real::Tensor& d_output,
                          std::span<const real::Gradient> d_inputs, MemoryPool&) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const std::int64_t columns = call.operation->columns;
  for (std::int64_t row = 0; row < d_output.rows; ++row) {
    const T *const gate = numbers<T>(call.inputs[0]) + row * 2 * columns, *const value = gate + columns;
    const T* const gradient = numbers<T>(d_output) + row * columns;
    T* const d_gate = numbers<T>(to.tensor) + row * 2 * columns;
    put(to.add, columns, d_gate, [=](std::int64_t i) { return gradient[i] * value[i] * silu_slope(gate[i]); });
    put(to.add, columns, d_gate + columns, [=](std::int64_t i) { return gradient[i] * silu(gate[i]); });
  }
}

}  // namespace

template <class T>
OperationKernels silu_kernels() {
  return {forward<T>, input_gradient<T>, nullptr};
}
template <class T>
OperationKernels gated_silu_kernels() {
  return {gated_forward<T>, gated_input_gradient<T>, nullptr};
}
template OperationKernels silu_kernels<float>();
template OperationKernels silu_kernels<double>();
template OperationKernels gated_silu_kernels<float>();
template OperationKernels gated_silu_kernels<double>();

}  // namespace stagecraft::cpu
