// Losses and their gradients: cross entropy, also with classes divided over devices, and the mean and the sum of
// squares.

#include <cmath>
#include <limits>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/operations.hpp"

namespace stagecraft::cpu {
namespace {

/// -log softmax(x)[t] of each row, and its gradient, softmax(x) - [i = t].
template <class T>
void cross_entropy(const real::Call& call) {
  const Operation& op = *call.operation;
  const double weight = call.scale / op.rows;
  double total = 0;
  for (std::int64_t row = 0; row < call.samples * op.rows; ++row) {
    const T* const x = numbers<T>(call.inputs[0]) + row * op.columns;
    T* const gradient = numbers<T>(call.saved) + row * op.columns;
    const std::int64_t target = whole_number(numbers<T>(call.inputs[1])[row], op.columns, "class", op);
    const SoftmaxParts<T> parts = softmax_exponentials(op.columns, x, T{1}, gradient);
    total += std::log(static_cast<double>(parts.sum)) + static_cast<double>(parts.largest - x[target]);
    const T factor = static_cast<T>(weight / static_cast<double>(parts.sum));
    put(false, op.columns, gradient, [=](std::int64_t i) { return gradient[i] * factor; });
    gradient[target] -= static_cast<T>(weight);
  }
  *numbers<T>(call.output) = static_cast<T>(weight * total);
}

/// The sums over all classes are in `rows`; the largest score is a term of the loss that the targets have without.
template <class T>
void divided_gradient(const real::Call& call, const real::DividedLoss& rows) {
  const Operation& op = *call.operation;
  const double weight = call.scale / op.rows;
  double total = 0;
  for (std::int64_t row = 0; row < call.samples * op.rows; ++row) {
    T* const gradient = numbers<T>(call.saved) + row * op.columns;
    const auto all_classes = static_cast<double>(numbers<T>(rows.sums)[row]);
    total += std::log(all_classes) - static_cast<double>(numbers<T>(rows.targets)[row]);
    const T factor = static_cast<T>(weight / all_classes);
    put(false, op.columns, gradient, [=](std::int64_t i) { return gradient[i] * factor; });
    const std::int64_t target =
        whole_number(numbers<T>(call.inputs[1])[row], call.words, "class", op) - call.first_word;
    if (target >= 0 && target < op.columns) gradient[target] -= static_cast<T>(weight);
  }
  *numbers<T>(call.output) = static_cast<T>(weight * total);
}

template <class T>
void divided_sums(const real::Call& call, const real::DividedLoss& rows) {
  const Operation& op = *call.operation;
  for (std::int64_t row = 0; row < call.samples * op.rows; ++row) {
    const T* const x = numbers<T>(call.inputs[0]) + row * op.columns;
    T* const to = numbers<T>(call.saved) + row * op.columns;
    const T largest = numbers<T>(rows.largest)[row];
    put(false, op.columns, to, [=](std::int64_t i) { return real::exponential(x[i] - largest); });
    numbers<T>(rows.sums)[row] = sum<T>(op.columns, [to](std::int64_t i) { return to[i]; });
    const std::int64_t target =
        whole_number(numbers<T>(call.inputs[1])[row], call.words, "class", op) - call.first_word;
    numbers<T>(rows.targets)[row] = target >= 0 && target < op.columns ? x[target] - largest : T{0};
  }
}

template <class T>
void divided_largest(const real::Call& call, const real::DividedLoss& rows) {
  const Operation& op = *call.operation;
  for (std::int64_t row = 0; row < call.samples * op.rows; ++row) {
    const T* const x = numbers<T>(call.inputs[0]) + row * op.columns;
    numbers<T>(rows.largest)[row] = joined(
        op.columns, -std::numeric_limits<T>::infinity(), [x](std::int64_t i) { return x[i]; },
        [](T a, T b) { return a < b ? b : a; });
  }
}

/// weight * sum (y - t)^2, and its gradient.
template <class T>
void squares(const real::Call& call, double weight) {
  const T *const y = numbers<T>(call.inputs[0]), *const t = numbers<T>(call.inputs[1]);
  const std::int64_t count = call.inputs[0].size();
  const double total = sum<double>(count, [=](std::int64_t i) {
    const auto difference = static_cast<double>(y[i] - t[i]);
    return difference * difference;
  });
  put(false, count, numbers<T>(call.saved),
      [=, factor = static_cast<T>(2 * weight)](std::int64_t i) { return (y[i] - t[i]) * factor; });
  *numbers<T>(call.output) = static_cast<T>(weight * total);
}

template <class T>
void mean_square(const real::Call& call) {
  squares<T>(call, call.scale / (static_cast<double>(call.operation->rows) * call.operation->columns));
}

template <class T>
void sum_square(const real::Call& call) {
  squares<T>(call, call.scale);
}

template <class T>
void input_gradient(const real::Call& call, const real::Tensor&, std::span<const real::Gradient> d_inputs,
                    MemoryPool&) {
  const real::Gradient& to = d_inputs[0];
  if (!to.tensor) return;
  put(to.add, to.tensor.size(), numbers<T>(to.tensor),
      [saved = numbers<T>(call.saved)](std::int64_t i) { return saved[i]; });
}

}  // namespace

template <class T>
void divided_cross_entropy(real::DividedLossStep step, const real::Call& call, const real::DividedLoss& rows) {
  switch (step) {
    case real::DividedLossStep::Largest:
      return divided_largest<T>(call, rows);
    case real::DividedLossStep::Sums:
      return divided_sums<T>(call, rows);
    case real::DividedLossStep::Gradient:
      return divided_gradient<T>(call, rows);
  }
}
template void divided_cross_entropy<float>(real::DividedLossStep, const real::Call&, const real::DividedLoss&);
template void divided_cross_entropy<double>(real::DividedLossStep, const real::Call&, const real::DividedLoss&);

template <class T>
OperationKernels cross_entropy_kernels() {
  return {cross_entropy<T>, input_gradient<T>, nullptr};
}
template <class T>
OperationKernels mean_square_kernels() {
  return {mean_square<T>, input_gradient<T>, nullptr};
}
template <class T>
OperationKernels sum_square_kernels() {
  return {sum_square<T>, input_gradient<T>, nullptr};
}
template OperationKernels cross_entropy_kernels<float>();
template OperationKernels cross_entropy_kernels<double>();
template OperationKernels mean_square_kernels<float>();
template OperationKernels mean_square_kernels<double>();
template OperationKernels sum_square_kernels<float>();
template OperationKernels sum_square_kernels<double>();

}  // namespace stagecraft::cpu
