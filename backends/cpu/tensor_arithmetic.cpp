// Elementwise tensor functions with broadcasting: arithmetic, comparisons, logic, choices and activations.

#include <cmath>
#include <numbers>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/tensor_functions.hpp"
#include "backends/real/formulas/elementary.hpp"

namespace stagecraft::cpu {
namespace {

template <std::size_t N, class T>
std::array<TensorShape, N> strides_of(const TensorCall<T>& call) {
  std::array<TensorShape, N> strides;
  for (std::size_t i = 0; i < N; ++i) strides[i] = broadcast_strides(call.op.operands[i].shape, call.op.shape);
  return strides;
}

// ---------------------------------------------------------------- two operands

template <class T>
T product(T a, T b) {
  return a * b;
}
template <class T>
T quotient(T a, T b) {
  return a / b;
}
template <class T>
T slope_for_dividend(T, T b) {
  return 1 / b;
}
template <class T>
T slope_for_divisor(T a, T b) {
  return -a / (b * b);
}

template <class T>
T power(T a, T b) {
  return b == 2 ? a * a : std::pow(a, b);
}
template <class T>
T slope_for_base(T a, T b) {
  return b == 2 ? 2 * a : b == 0 ? 0 : b * std::pow(a, b - 1);
}
template <class T>
T slope_for_exponent(T, T) {
  return 0;
}

template <class T>
T smaller(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T slope_for_smaller(T a, T b) {
  return a < b ? 1 : 0;
}
template <class T>
T slope_for_not_smaller(T a, T b) {
  return a < b ? 0 : 1;
}
template <class T>
T larger(T a, T b) {
  return a < b ? b : a;
}
template <class T>
T slope_for_larger(T a, T b) {
  return b < a ? 1 : 0;
}
template <class T>
T slope_for_not_larger(T a, T b) {
  return b < a ? 0 : 1;
}

template <class T, T value(T, T)>
void binary(const TensorCall<T>& call, T* output) {
  const T *const a = call.operands[0], *const b = call.operands[1];
  walk(call.op.shape, strides_of<2>(call),
       [=](std::int64_t i, const auto& at) { output[i] = value(a[at[0]], b[at[1]]); });
}

template <class T, T for_first(T, T), T for_second(T, T)>
void binary_gradient(const TensorCall<T>& call, std::size_t operand, T* to) {
  const T *const a = call.operands[0], *const b = call.operands[1], *const gradient = call.d_output;
  walk(call.op.shape, strides_of<2>(call), [=](std::int64_t i, const auto& at) {
    const T x = a[at[0]], y = b[at[1]];
    to[at[operand]] += gradient[i] * (operand == 0 ? for_first(x, y) : for_second(x, y));
  });
}

/// The gradient for one factor reads the other one alone.
template <class T>
void product_of_two_gradient(const TensorCall<T>& call, std::size_t operand, T* to) {
  const T *const other = call.operands[1 - operand], *const gradient = call.d_output;
  walk(call.op.shape, strides_of<2>(call),
       [=](std::int64_t i, const auto& at) { to[at[operand]] += gradient[i] * other[at[1 - operand]]; });
}

/// A sum or a difference, whose gradients read no operand.
template <class T, int sign>
void sum_of_two(const TensorCall<T>& call, T* output) {
  const T *const a = call.operands[0], *const b = call.operands[1];
  walk(call.op.shape, strides_of<2>(call),
       [=](std::int64_t i, const auto& at) { output[i] = a[at[0]] + sign * b[at[1]]; });
}

template <class T, int sign>
void sum_of_two_gradient(const TensorCall<T>& call, std::size_t operand, T* to) {
  const T* const gradient = call.d_output;
  const T slope = operand == 0 ? 1 : sign;
  walk(call.op.shape, strides_of<2>(call),
       [=](std::int64_t i, const auto& at) { to[at[operand]] += gradient[i] * slope; });
}

template <class T, class Holds>
void comparison(const TensorCall<T>& call, T* output, Holds holds) {
  const T *const a = call.operands[0], *const b = call.operands[1];
  walk(call.op.shape, strides_of<2>(call),
       [=](std::int64_t i, const auto& at) { output[i] = holds(a[at[0]], b[at[1]]) ? 1 : 0; });
}

template <class T>
TensorKernels<T> comparison_kernels(TensorFunction function) {
  switch (function) {
    case TensorFunction::Equal:
      return {[](const TensorCall<T>& call, T* y) { comparison(call, y, [](T a, T b) { return a == b; }); }};
    case TensorFunction::Less:
      return {[](const TensorCall<T>& call, T* y) { comparison(call, y, [](T a, T b) { return a < b; }); }};
    case TensorFunction::LessOrEqual:
      return {[](const TensorCall<T>& call, T* y) { comparison(call, y, [](T a, T b) { return a <= b; }); }};
    case TensorFunction::And:
      return {[](const TensorCall<T>& call, T* y) { comparison(call, y, [](T a, T b) { return a != 0 && b != 0; }); }};
    case TensorFunction::Or:
      return {[](const TensorCall<T>& call, T* y) { comparison(call, y, [](T a, T b) { return a != 0 || b != 0; }); }};
    default:
      return {};
  }
}

// ---------------------------------------------------------------- three operands

template <class T>
void choose(const TensorCall<T>& call, T* output) {
  const T *const condition = call.operands[0], *const a = call.operands[1], *const b = call.operands[2];
  walk(call.op.shape, strides_of<3>(call),
       [=](std::int64_t i, const auto& at) { output[i] = condition[at[0]] != 0 ? a[at[1]] : b[at[2]]; });
}

template <class T>
void choose_gradient(const TensorCall<T>& call, std::size_t operand, T* to) {
  if (operand == 0) return;
  const T *const condition = call.operands[0], *const gradient = call.d_output;
  walk(call.op.shape, strides_of<3>(call), [=](std::int64_t i, const auto& at) {
    if ((condition[at[0]] != 0) == (operand == 1)) to[at[operand]] += gradient[i];
  });
}

// ---------------------------------------------------------------- one operand

// A slope is a function of the number that the gradient reads: of the output y if reads_output() says so, else of the
// operand x.

template <class T>
T root(T x) {
  return std::sqrt(x);
}
template <class T>
T root_slope(T y) {
  return 1 / (2 * y);
}

template <class T>
T reciprocal(T x) {
  return 1 / x;
}
template <class T>
T reciprocal_slope(T y) {
  return -y * y;
}

template <class T>
T exponential(T x) {
  return real::exponential(x);
}
template <class T>
T exponential_slope(T y) {
  return y;
}

template <class T>
T logarithm(T x) {
  return std::log(x);
}
template <class T>
T logarithm_slope(T x) {
  return 1 / x;
}

template <class T>
T sine(T x) {
  return std::sin(x);
}
template <class T>
T cosine(T x) {
  return std::cos(x);
}
template <class T>
T cosine_slope(T x) {
  return -std::sin(x);
}

template <class T>
T sigmoid(T x) {
  return real::logistic(x);
}
template <class T>
T sigmoid_slope(T y) {
  return y * (1 - y);
}

template <class T>
T error_function(T x) {
  return std::erf(x);
}
template <class T>
T error_function_slope(T x) {
  return 2 * std::numbers::inv_sqrtpi_v<T> * real::exponential(-x * x);
}

template <class T>
constexpr T kRootOfHalf = std::numbers::sqrt2_v<T> / 2;

template <class T>
T gelu(T x) {
  return x / 2 * (1 + std::erf(x * kRootOfHalf<T>));
}
template <class T>
T gelu_slope(T x) {
  const T density = std::numbers::inv_sqrtpi_v<T> * kRootOfHalf<T> * real::exponential(-x * x / 2);
  return (1 + std::erf(x * kRootOfHalf<T>)) / 2 + x * density;
}

template <class T, T function(T)>
void unary(const TensorCall<T>& call, T* output) {
  put(false, numbers_of(call.op.shape), output, [x = call.operands[0]](std::int64_t i) { return function(x[i]); });
}

template <class T, T slope(T)>
void unary_gradient(const TensorCall<T>& call, std::size_t, T* to) {
  const T* const read = reads_output(call.op.function) ? call.output : call.operands[0];
  put(true, numbers_of(call.op.shape), to,
      [=, gradient = call.d_output](std::int64_t i) { return gradient[i] * slope(read[i]); });
}

template <class T, T function(T), T slope(T)>
TensorKernels<T> unary_kernels() {
  return {unary<T, function>, unary_gradient<T, slope>};
}

template <class T>
TensorKernels<T> negation_kernels() {
  return {[](const TensorCall<T>& call, T* y) {
            put(false, numbers_of(call.op.shape), y, [x = call.operands[0]](std::int64_t i) { return -x[i]; });
          },
          [](const TensorCall<T>& call, std::size_t, T* to) {
            put(true, numbers_of(call.op.shape), to, [g = call.d_output](std::int64_t i) { return -g[i]; });
          }};
}

template <class T>
TensorKernels<T> not_kernels() {
  return {[](const TensorCall<T>& call, T* y) {
    put(false, numbers_of(call.op.shape), y, [x = call.operands[0]](std::int64_t i) { return T(x[i] == 0 ? 1 : 0); });
  }};
}

template <class T>
TensorKernels<T> kernels_of_one_operand(TensorFunction function) {
  using enum TensorFunction;
  switch (function) {
    case Not:
      return not_kernels<T>();
    case Negate:
      return negation_kernels<T>();
    case Reciprocal:
      return unary_kernels<T, reciprocal<T>, reciprocal_slope<T>>();
    case SquareRoot:
      return unary_kernels<T, root<T>, root_slope<T>>();
    case Exponential:
      return unary_kernels<T, exponential<T>, exponential_slope<T>>();
    case Logarithm:
      return unary_kernels<T, logarithm<T>, logarithm_slope<T>>();
    case Sine:
      return unary_kernels<T, sine<T>, cosine<T>>();
    case Cosine:
      return unary_kernels<T, cosine<T>, cosine_slope<T>>();
    case TensorFunction::Relu:
      return unary_kernels<T, real::Relu<T>::value, real::Relu<T>::slope>();
    case TensorFunction::Tanh:
      return unary_kernels<T, real::Tanh<T>::value, real::Tanh<T>::slope>();
    case Sigmoid:
      return unary_kernels<T, sigmoid<T>, sigmoid_slope<T>>();
    case ErrorFunction:
      return unary_kernels<T, error_function<T>, error_function_slope<T>>();
    case TensorFunction::Gelu:
      return unary_kernels<T, gelu<T>, gelu_slope<T>>();
    case GeluTanh:
      return unary_kernels<T, real::Gelu<T>::value, real::Gelu<T>::slope>();
    default:
      return {};
  }
}

}  // namespace

template <class T>
TensorKernels<T> arithmetic_kernels(TensorFunction function) {
  switch (function) {
    case TensorFunction::Add:
      return {sum_of_two<T, 1>, sum_of_two_gradient<T, 1>};
    case TensorFunction::Subtract:
      return {sum_of_two<T, -1>, sum_of_two_gradient<T, -1>};
    case TensorFunction::Multiply:
      return {binary<T, product<T>>, product_of_two_gradient<T>};
    case TensorFunction::Divide:
      return {binary<T, quotient<T>>, binary_gradient<T, slope_for_dividend<T>, slope_for_divisor<T>>};
    case TensorFunction::Power:
      return {binary<T, power<T>>, binary_gradient<T, slope_for_base<T>, slope_for_exponent<T>>};
    case TensorFunction::Minimum:
      return {binary<T, smaller<T>>, binary_gradient<T, slope_for_smaller<T>, slope_for_not_smaller<T>>};
    case TensorFunction::Maximum:
      return {binary<T, larger<T>>, binary_gradient<T, slope_for_larger<T>, slope_for_not_larger<T>>};
    case TensorFunction::Where:
      return {choose<T>, choose_gradient<T>};
    default:
      break;
  }
  const TensorKernels<T> comparisons = comparison_kernels<T>(function);
  return comparisons.value ? comparisons : kernels_of_one_operand<T>(function);
}
template TensorKernels<float> arithmetic_kernels<float>(TensorFunction);
template TensorKernels<double> arithmetic_kernels<double>(TensorFunction);

}  // namespace stagecraft::cpu
