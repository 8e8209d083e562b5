// Matrix products with weights and a bias: forward and both gradients, also together with the GELU before or after
// them.

#include "backends/cuda/kernels/each.hpp"
#include "backends/cuda/kernels/matmul.hpp"
#include "backends/cuda/kernels/rows.hpp"

namespace stagecraft::cuda {
namespace {

Matrices whole(const void* data, std::int64_t columns, bool transposed = false) {
  return {.base = data, .stride = columns, .transposed = transposed};
}

template <class T>
void forward(const Device& device, const real::Call& call) {
  const Operation& op = *call.operation;
  const T* const bias = static_cast<const T*>(call.weights) + real::second_block(op, sizeof(T));
  const ProductShape shape{call.output.rows, op.columns, op.inner};
  const Matrices in = whole(call.inputs[0].data, op.inner), weights = whole(call.weights, op.inner, true);
  const Matrices out = whole(call.output.data, op.columns);
  if (op.bias && device.products->multiply_with_bias(shape, in, weights, out, bias)) return;
  if (op.bias)
    each_in_rows(device, call.output.rows, op.columns, SpreadRow<T>{bias, op.columns, numbers<T>(call.output)});
  device.products->multiply(shape, in, weights, out, op.bias);
}

template <class T>
void input_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output,
                    std::span<const real::Gradient> d_inputs) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const Operation& op = *call.operation;
  device.products->multiply({d_output.rows, op.inner, op.columns}, whole(d_output.data, op.columns),
                            whole(call.weights, op.inner), whole(to.tensor.data, op.inner), to.add);
}

template <class T>
void weight_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output, void* d_weights) {
  const Operation& op = *call.operation;
  Matrices sums = whole(d_weights, op.inner);
  sums.is_wide = true;
  const ProductShape shape{op.columns, op.inner, d_output.rows};
  const Matrices gradient = whole(d_output.data, op.columns, true), in = whole(call.inputs[0].data, op.inner);
  if (op.bias) {
    const Scratch<Wide<T>> bias_sums(*device.memory, op.columns);
    if (device.products->multiply_with_row_sums(shape, gradient, in, sums, bias_sums.data()))
      return add(device, op.columns, bias_sums.data(),
                 static_cast<Wide<T>*>(d_weights) + real::second_block(op, sizeof(T)));
  }
  device.products->multiply(shape, gradient, in, sums, true);
  if (op.bias)
    add_column_sums<Wide<T>, 1>(device, d_output.rows, op.columns, AddNumber<T>{numbers<T>(d_output), op.columns},
                                {{static_cast<Wide<T>*>(d_weights) + real::second_block(op, sizeof(T))}});
}

}  // namespace

template <class T>
void linear_with_gelu(const Device& device, const real::Call& product, const real::Call& gelu) {
  const Operation& op = *product.operation;
  const void* const bias =
      op.bias ? static_cast<const T*>(product.weights) + real::second_block(op, sizeof(T)) : nullptr;
  const bool together = device.products->multiply_with_gelu(
      {product.output.rows, op.columns, op.inner}, whole(product.inputs[0].data, op.inner),
      whole(product.weights, op.inner, true), whole(gelu.output.data, op.columns), bias, product.output.data);
  if (together) return;
  forward<T>(device, product);
  gelu_kernels<T>().forward(device, gelu);
}

template <class T>
void linear_gradient_with_gelu(const Device& device, const real::Call& product, const real::Tensor& d_output,
                               const real::Gradient& between, const real::Call& gelu, const real::Gradient& d_input) {
  const Operation& op = *product.operation;
  const bool together =
      !between.add && !d_input.add &&
      device.products->multiply_with_gelu_slope({d_output.rows, op.inner, op.columns}, whole(d_output.data, op.columns),
                                                whole(product.weights, op.inner), whole(d_input.tensor.data, op.inner),
                                                gelu.inputs[0].data);
  if (together) return;
  input_gradient<T>(device, product, d_output, {&between, 1});
  gelu_kernels<T>().input_gradient(device, gelu, between.tensor, {&d_input, 1});
}

template <class T>
OperationKernels linear_kernels() {
  return {forward<T>, input_gradient<T>, weight_gradient<T>};
}
template OperationKernels linear_kernels<float>();
template OperationKernels linear_kernels<double>();
template OperationKernels linear_kernels<Bfloat16>();
template void linear_with_gelu<float>(const Device&, const real::Call&, const real::Call&);
template void linear_with_gelu<Bfloat16>(const Device&, const real::Call&, const real::Call&);
template void linear_gradient_with_gelu<float>(const Device&, const real::Call&, const real::Tensor&,
                                               const real::Gradient&, const real::Call&, const real::Gradient&);
template void linear_gradient_with_gelu<Bfloat16>(const Device&, const real::Call&, const real::Tensor&,
                                                  const real::Gradient&, const real::Call&, const real::Gradient&);

}  // namespace stagecraft::cuda
