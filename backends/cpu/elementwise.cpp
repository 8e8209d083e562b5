// Activations, sums of inputs, concatenations and slices of columns: forward and gradients.

#include <algorithm>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"
#include "backends/real/formulas/elementary.hpp"

namespace stagecraft::cpu {
namespace {

template <class T, class Function>
void forward(const real::Call& call) {
  const T* const x = numbers<T>(call.inputs[0]);
  put(false, call.output.size(), numbers<T>(call.output), [x](std::int64_t i) { return Function::value(x[i]); });
}

template <class T, class Function>
void input_gradient(const real::Call& call, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                    MemoryPool&) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  const T* const saved = numbers<T>(Function::keeps_output ? call.output : call.inputs[0]);
  const T* const gradient = numbers<T>(d_output);
  put(to.add, d_output.size(), numbers<T>(to.tensor),
      [saved, gradient](std::int64_t i) { return gradient[i] * Function::slope(saved[i]); });
}

template <class T, class Function>
OperationKernels kernels() {
  return {forward<T, Function>, input_gradient<T, Function>, nullptr};
}

}  // namespace

template <class T>
OperationKernels relu_kernels() {
  return kernels<T, real::Relu<T>>();
}
template <class T>
OperationKernels tanh_kernels() {
  return kernels<T, real::Tanh<T>>();
}
template <class T>
OperationKernels gelu_kernels() {
  return kernels<T, real::Gelu<T>>();
}
template <class T>
OperationKernels silu_kernels() {
  return kernels<T, real::Silu<T>>();
}
template OperationKernels relu_kernels<float>();
template OperationKernels relu_kernels<double>();
template OperationKernels tanh_kernels<float>();
template OperationKernels tanh_kernels<double>();
template OperationKernels gelu_kernels<float>();
template OperationKernels gelu_kernels<double>();
template OperationKernels silu_kernels<float>();
template OperationKernels silu_kernels<double>();

namespace {

/// Rows of `columns` numbers, out of wider rows or into them.
template <class T>
void copy_rows(bool add, std::int64_t rows, std::int64_t columns, const T* from, std::int64_t from_stride, T* to,
               std::int64_t to_stride) {
  for (std::int64_t row = 0; row < rows; ++row, from += from_stride, to += to_stride)
    put(add, columns, to, [from](std::int64_t i) { return from[i]; });
}

template <class T>
void add_forward(const real::Call& call) {
  bool add = false;
  for (const real::Tensor& input : call.inputs) {
    put(add, call.output.size(), numbers<T>(call.output), [x = numbers<T>(input)](std::int64_t i) { return x[i]; });
    add = true;
  }
}

template <class T>
void add_input_gradient(const real::Call&, const real::Tensor& d_output, std::span<const real::Gradient> d_inputs,
                        MemoryPool&) {
  for (const real::Gradient& to : d_inputs)
    if (to.tensor)
      put(to.add, d_output.size(), numbers<T>(to.tensor),
          [gradient = numbers<T>(d_output)](std::int64_t i) { return gradient[i]; });
}

template <class T>
void concat_forward(const real::Call& call) {
  T* to = numbers<T>(call.output);
  for (const real::Tensor& input : call.inputs) {
    copy_rows<T>(false, input.rows, input.columns, numbers<T>(input), input.columns, to, call.output.columns);
    to += input.columns;
  }
}

template <class T>
void concat_input_gradient(const real::Call& call, const real::Tensor& d_output,
                           std::span<const real::Gradient> d_inputs, MemoryPool&) {
  const T* from = numbers<T>(d_output);
  for (std::size_t i = 0; i < d_inputs.size(); ++i) {
    const std::int64_t columns = call.inputs[i].columns;
    if (const real::Gradient& to = d_inputs[i]; to.tensor)
      copy_rows<T>(to.add, d_output.rows, columns, from, d_output.columns, numbers<T>(to.tensor), columns);
    from += columns;
  }
}

template <class T>
void slice_forward(const real::Call& call) {
  const real::Tensor &from = call.inputs[0], &to = call.output;
  copy_rows<T>(false, to.rows, to.columns, numbers<T>(from) + call.operation->inner, from.columns, numbers<T>(to),
               to.columns);
}

template <class T>
void slice_input_gradient(const real::Call& call, const real::Tensor& d_output,
                          std::span<const real::Gradient> d_inputs, MemoryPool&) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  if (!to.add) std::fill_n(numbers<T>(to.tensor), to.tensor.size(), T{0});
  copy_rows<T>(true, d_output.rows, d_output.columns, numbers<T>(d_output), d_output.columns,
               numbers<T>(to.tensor) + call.operation->inner, to.tensor.columns);
}

}  // namespace

template <class T>
OperationKernels slice_kernels() {
  return {slice_forward<T>, slice_input_gradient<T>, nullptr};
}
template OperationKernels slice_kernels<float>();
template OperationKernels slice_kernels<double>();

template <class T>
OperationKernels add_kernels() {
  return {add_forward<T>, add_input_gradient<T>, nullptr};
}
template <class T>
OperationKernels concat_kernels() {
  return {concat_forward<T>, concat_input_gradient<T>, nullptr};
}
template OperationKernels add_kernels<float>();
template OperationKernels add_kernels<double>();
template OperationKernels concat_kernels<float>();
template OperationKernels concat_kernels<double>();

}  // namespace stagecraft::cpu
