// A matrix product for the rows of each expert: forward and both gradients.

#include <cstring>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/matrix.hpp"
#include "backends/cpu/operations.hpp"

namespace stagecraft::cpu {
namespace {

/// Calls visit(expert, its first row, number of its rows) for experts that have rows.
template <class Visit>
void for_each_expert(const real::Call& call, Visit&& visit) {
  for (std::int64_t e = 0; e < call.operation->experts; ++e)
    if (const std::int64_t first = call.expert_rows[e], count = call.expert_rows[e + 1] - first; count > 0)
      visit(e, first, count);
}

template <class T>
void forward(const real::Call& call) {
  const Operation& op = *call.operation;
  const std::int64_t columns = op.columns, inner = op.inner;
  const T* const weights = static_cast<const T*>(call.weights);
  const T* const biases = weights + real::second_block(op, sizeof(T));
  for_each_expert(call, [&](std::int64_t e, std::int64_t first, std::int64_t count) {
    T* const output = numbers<T>(call.output) + first * columns;
    if (op.bias)
      for (std::int64_t row = 0; row < count; ++row)
        std::memcpy(output + row * columns, biases + e * columns, sizeof(T) * static_cast<std::size_t>(columns));
    multiply_second_transposed(op.bias, view(output, count, columns),
                               view(numbers<T>(call.inputs[0]) + first * inner, count, inner),
                               view(weights + e * columns * inner, columns, inner));
  });
}

template <class T>
void input_gradient(const real::Call& call, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                    MemoryPool&) {
  if (!d_inputs[0].tensor) return;
  const std::int64_t columns = call.operation->columns, inner = call.operation->inner;
  for_each_expert(call, [&](std::int64_t e, std::int64_t first, std::int64_t count) {
    multiply(d_inputs[0].add, view(numbers<T>(d_inputs[0].tensor) + first * inner, count, inner),
             view(numbers<T>(d_output) + first * columns, count, columns),
             view(static_cast<const T*>(call.weights) + e * columns * inner, columns, inner));
  });
}

template <class T>
void weight_gradient(const real::Call& call, const real::Tensor& d_output, void* d_weights) {
  const Operation& op = *call.operation;
  const std::int64_t columns = op.columns, inner = op.inner;
  T* const d_biases = static_cast<T*>(d_weights) + real::second_block(op, sizeof(T));
  for_each_expert(call, [&](std::int64_t e, std::int64_t first, std::int64_t count) {
    const T* const gradient = numbers<T>(d_output) + first * columns;
    multiply_first_transposed(true, view(static_cast<T*>(d_weights) + e * columns * inner, columns, inner),
                              view(gradient, count, columns),
                              view(numbers<T>(call.inputs[0]) + first * inner, count, inner));
    if (!op.bias) return;
    for (std::int64_t row = 0; row < count; ++row)
      put(true, columns, d_biases + e * columns, [from = gradient + row * columns](std::int64_t i) { return from[i]; });
  });
}

}  // namespace

template <class T>
OperationKernels grouped_linear_kernels() {
  return {forward<T>, input_gradient<T>, weight_gradient<T>};
}
template OperationKernels grouped_linear_kernels<float>();
template OperationKernels grouped_linear_kernels<double>();

}  // namespace stagecraft::cpu
