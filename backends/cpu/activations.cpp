#include "backends/cpu/elementary.hpp"
#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"

namespace stagecraft::cpu {
namespace {

/// `slope` is a function of the number that the operation keeps: its output, or its input.
template <class T>
struct Relu {
  static constexpr bool keeps_output = true;
  static T value(T x) { return x < 0 ? T{0} : x; }  // What is not a number stays so, for somebody to see.
  static T slope(T y) { return y > 0 ? T{1} : T{0}; }
};

template <class T>
struct Tanh {
  static constexpr bool keeps_output = true;
  static T value(T x) { return hyperbolic_tangent(x); }
  static T slope(T y) { return 1 - y * y; }
};

/// x s(z), s the logistic function and z = 2 sqrt(2/pi) (x + 0.044715 x^3): what Operation.hpp says, without a
/// difference of nearly equal numbers.
template <class T>
struct Gelu {
  static constexpr bool keeps_output = false;
  static constexpr T kOne = static_cast<T>(1.5957691216057308), kThree = static_cast<T>(1.5957691216057308 * 0.044715);

  static T share(T x) { return logistic(x * (kOne + kThree * (x * x))); }
  static T value(T x) { return x * share(x); }
  static T slope(T x) {
    const T s = share(x);
    return s + s * (1 - s) * (x * (kOne + 3 * kThree * (x * x)));
  }
};

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
  return kernels<T, Relu<T>>();
}
template <class T>
OperationKernels tanh_kernels() {
  return kernels<T, Tanh<T>>();
}
template <class T>
OperationKernels gelu_kernels() {
  return kernels<T, Gelu<T>>();
}
template OperationKernels relu_kernels<float>();
template OperationKernels relu_kernels<double>();
template OperationKernels tanh_kernels<float>();
template OperationKernels tanh_kernels<double>();
template OperationKernels gelu_kernels<float>();
template OperationKernels gelu_kernels<double>();

}  // namespace stagecraft::cpu
