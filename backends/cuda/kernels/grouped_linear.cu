// A matrix product for the rows of each expert: forward and both gradients.

#include "backends/cuda/kernels/each.hpp"
#include "backends/cuda/kernels/matmul.hpp"
#include "backends/cuda/kernels/rows.hpp"

namespace stagecraft::cuda {
namespace {

/// Calls visit(expert, its first row, number of its rows) for experts that have rows. The host knows the rows, so each
/// expert is one matrix product.
template <class Visit>
void for_each_expert(const real::Call& call, Visit&& visit) {
  for (std::int64_t e = 0; e < call.operation->experts; ++e)
    if (const std::int64_t first = call.expert_rows[e], count = call.expert_rows[e + 1] - first; count > 0)
      visit(e, first, count);
}

/// Rows of an array, or the weights of an expert, which are `columns` rows.
Matrices rows_from(const void* data, std::int64_t first, std::int64_t columns, bool transposed = false) {
  return {.base = data, .offset = first * columns, .stride = columns, .transposed = transposed};
}

template <class T>
void forward(const Device& device, const real::Call& call) {
  const Operation& op = *call.operation;
  const T* const biases = static_cast<const T*>(call.weights) + real::second_block(op, sizeof(T));
  for_each_expert(call, [&](std::int64_t e, std::int64_t first, std::int64_t count) {
    if (op.bias)
      each_in_rows(device, count, op.columns,
                   SpreadRow<T>{biases + e * op.columns, op.columns, numbers<T>(call.output) + first * op.columns});
    device.products->multiply({count, op.columns, op.inner}, rows_from(call.inputs[0].data, first, op.inner),
                              rows_from(call.weights, e * op.columns, op.inner, true),
                              rows_from(call.output.data, first, op.columns), op.bias);
  });
}

template <class T>
void input_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output,
                    std::span<const real::Gradient> d_inputs) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const Operation& op = *call.operation;
  for_each_expert(call, [&](std::int64_t e, std::int64_t first, std::int64_t count) {
    device.products->multiply({count, op.inner, op.columns}, rows_from(d_output.data, first, op.columns),
                              rows_from(call.weights, e * op.columns, op.inner),
                              rows_from(to.tensor.data, first, op.inner), to.add);
  });
}

template <class T>
void weight_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output, void* d_weights) {
  const Operation& op = *call.operation;
  T* const d_biases = static_cast<T*>(d_weights) + real::second_block(op, sizeof(T));
  for_each_expert(call, [&](std::int64_t e, std::int64_t first, std::int64_t count) {
    device.products->multiply({op.columns, op.inner, count}, rows_from(d_output.data, first, op.columns, true),
                              rows_from(call.inputs[0].data, first, op.inner),
                              rows_from(d_weights, e * op.columns, op.inner), true);
    if (op.bias)
      add_column_sums<T, 1>(device, count, op.columns,
                            AddNumber<T>{numbers<T>(d_output) + first * op.columns, op.columns},
                            {{d_biases + e * op.columns}});
  });
}

}  // namespace

template <class T>
OperationKernels grouped_linear_kernels() {
  return {forward<T>, input_gradient<T>, weight_gradient<T>};
}
template OperationKernels grouped_linear_kernels<float>();
template OperationKernels grouped_linear_kernels<double>();

}  // namespace stagecraft::cuda
