// SwiGLU's activation, silu(gate) * value: forward and gradient.

#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"
#include "backends/real/formulas/elementary.hpp"

namespace stagecraft::cpu {
namespace {

/// A row of the input holds the gate, then the values.
template <class T>
void forward(const real::Call& call) {
  const std::int64_t columns = call.operation->columns;
  for (std::int64_t row = 0; row < call.output.rows; ++row) {
    const T *const gate = numbers<T>(call.inputs[0]) + row * 2 * columns, *const value = gate + columns;
    put(false, columns, numbers<T>(call.output) + row * columns,
        [=](std::int64_t i) { return real::Silu<T>::value(gate[i]) * value[i]; });
  }
}

template <class T>
void input_gradient(const real::Call& call, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                    MemoryPool&) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const std::int64_t columns = call.operation->columns;
  for (std::int64_t row = 0; row < d_output.rows; ++row) {
    const T *const gate = numbers<T>(call.inputs[0]) + row * 2 * columns, *const value = gate + columns;
    const T* const gradient = numbers<T>(d_output) + row * columns;
    T* const d_gate = numbers<T>(to.tensor) + row * 2 * columns;
    put(to.add, columns, d_gate,
        [=](std::int64_t i) { return gradient[i] * value[i] * real::Silu<T>::slope(gate[i]); });
    put(to.add, columns, d_gate + columns, [=](std::int64_t i) { return gradient[i] * real::Silu<T>::value(gate[i]); });
  }
}

}  // namespace

template <class T>
OperationKernels gated_silu_kernels() {
  return {forward<T>, input_gradient<T>, nullptr};
}
template OperationKernels gated_silu_kernels<float>();
template OperationKernels gated_silu_kernels<double>();

}  // namespace stagecraft::cpu
