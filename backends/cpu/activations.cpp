#include "backends/real/formulas/activations.hpp"
#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"

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
  const T* const kept = numbers<T>(Function::keeps_output ? call.output : call.inputs[0]);
  const T* const gradient = numbers<T>(d_output);
  put(to.add, d_output.size(), numbers<T>(to.tensor),
      [kept, gradient](std::int64_t i) { return gradient[i] * Function::slope(kept[i]); });
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
template OperationKernels relu_kernels<float>();
template OperationKernels relu_kernels<double>();
template OperationKernels tanh_kernels<float>();
template OperationKernels tanh_kernels<double>();
template OperationKernels gelu_kernels<float>();
template OperationKernels gelu_kernels<double>();

}  // namespace stagecraft::cpu
