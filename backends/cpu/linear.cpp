// Matrix products with weights and a bias: forward and both gradients.

#include <cstring>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/matrix.hpp"
#include "backends/cpu/operations.hpp"

namespace stagecraft::cpu {
namespace {

template <class T>
void forward(const real::Call& call) {
  const Operation& op = *call.operation;
  const std::int64_t rows = call.output.rows;
  const T* const weights = static_cast<const T*>(call.weights);
  T* const output = numbers<T>(call.output);
  const T* const bias = weights + real::second_block(op, sizeof(T));
  if (op.bias)
    for (std::int64_t row = 0; row < rows; ++row)
      std::memcpy(output + row * op.columns, bias, sizeof(T) * static_cast<std::size_t>(op.columns));
  multiply_second_transposed(op.bias, view(output, rows, op.columns), view(numbers<T>(call.inputs[0]), rows, op.inner),
                             view(weights, op.columns, op.inner));
}

template <class T>
void input_gradient(const real::Call& call, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                    MemoryPool&) {
  if (!d_inputs[0].tensor) return;
  const Operation& op = *call.operation;
  const std::int64_t rows = d_output.rows;
  multiply(d_inputs[0].add, view(numbers<T>(d_inputs[0].tensor), rows, op.inner),
           view(numbers<T>(d_output), rows, op.columns),
           view(static_cast<const T*>(call.weights), op.columns, op.inner));
}

template <class T>
void weight_gradient(const real::Call& call, const real::Tensor& d_output, void* d_weights) {
  const Operation& op = *call.operation;
  const std::int64_t rows = d_output.rows;
  const T* const gradient = numbers<T>(d_output);
  multiply_first_transposed(true, view(static_cast<T*>(d_weights), op.columns, op.inner),
                            view(gradient, rows, op.columns), view(numbers<T>(call.inputs[0]), rows, op.inner));
  if (!op.bias) return;
  T* const d_bias = static_cast<T*>(d_weights) + real::second_block(op, sizeof(T));
  for (std::int64_t row = 0; row < rows; ++row)
    put(true, op.columns, d_bias, [from = gradient + row * op.columns](std::int64_t i) { return from[i]; });
}

}  // namespace

template <class T>
OperationKernels linear_kernels() {
  return {forward<T>, input_gradient<T>, weight_gradient<T>};
}
template OperationKernels linear_kernels<float>();
template OperationKernels linear_kernels<double>();

}  // namespace stagecraft::cpu
