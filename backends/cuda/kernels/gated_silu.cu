// SwiGLU's activation, silu(gate) * value: forward and gradient.

#include "backends/cuda/kernels/each.hpp"
#include "backends/real/formulas/elementary.hpp"

namespace stagecraft::cuda {
namespace {

/// A row of the input holds the gate, then the values.
template <class T>
struct GateValues {
  const T* input;
  std::int64_t columns;  ///< Numbers of the gate.
  T* output;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    using Number = Wide<T>;
    const T* const gate = input + row * 2 * columns + column;
    const Number value = gate[columns];
    output[row * columns + column] = static_cast<T>(real::Silu<Number>::value(gate[0]) * value);
  }
};

/// A thread makes both gradients, because both need the gate and the gradient of the output.
template <class T>
struct GateGradients {
  bool add;
  const T *input, *gradient;
  std::int64_t columns;
  T* to;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    using Number = Wide<T>;
    const std::int64_t at = row * 2 * columns + column;
    const Number gate = input[at], value = input[at + columns], g = gradient[row * columns + column];
    put(at, g * value * real::Silu<Number>::slope(gate));
    put(at + columns, g * real::Silu<Number>::value(gate));
  }
  __device__ void put(std::int64_t at, Wide<T> value) const { to[at] = static_cast<T>(add ? to[at] + value : value); }
};

template <class T>
void forward(const Device& device, const real::Call& call) {
  const std::int64_t columns = call.operation->columns;
  each_in_rows(device, call.output.rows, columns,
               GateValues<T>{numbers<T>(call.inputs[0]), columns, numbers<T>(call.output)});
}

template <class T>
void input_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output,
                    std::span<const real::Gradient> d_inputs) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const std::int64_t columns = call.operation->columns;
  each_in_rows(
      device, d_output.rows, columns,
      GateGradients<T>{to.add, numbers<T>(call.inputs[0]), numbers<T>(d_output), columns, numbers<T>(to.tensor)});
}

}  // namespace

template <class T>
OperationKernels gated_silu_kernels() {
  return {forward<T>, input_gradient<T>, nullptr};
}
template OperationKernels gated_silu_kernels<float>();
template OperationKernels gated_silu_kernels<double>();
template OperationKernels gated_silu_kernels<Bfloat16>();

}  // namespace stagecraft::cuda
