// Tensor functions without arithmetic: views, selected entries and concatenations.

#include "backends/cpu/loops.hpp"
#include "backends/cpu/tensor_functions.hpp"

namespace stagecraft::cpu {
namespace {

template <class T>
void view_value(const TensorCall<T>& call, T* output) {
  walk<1>(call.op.shape, {call.op.strides},
          [=, x = call.operands[0] + call.op.offset](std::int64_t i, const auto& at) { output[i] = x[at[0]]; });
}

template <class T>
void view_gradient(const TensorCall<T>& call, std::size_t, T* to) {
  walk<1>(call.op.shape, {call.op.strides},
          [start = to + call.op.offset, gradient = call.d_output](std::int64_t i, const auto& at) {
            start[at[0]] += gradient[i];
          });
}

/// Numbers of a shape before and after one dimension, and its size.
struct AxisSizes {
  std::int64_t outer = 1, size = 1, inner = 1;
};
AxisSizes axis_sizes(const TensorShape& shape, std::size_t axis) {
  AxisSizes sizes;
  for (std::size_t d = 0; d < shape.size(); ++d)
    (d < axis ? sizes.outer : d == axis ? sizes.size : sizes.inner) *= shape[d];
  return sizes;
}

/// Calls visit(place in the output, place in the operand, count) for each run of selected numbers.
template <class Visit>
void each_selected(const TensorOperation& op, Visit&& visit) {
  const AxisSizes sizes = axis_sizes(op.operands.front().shape, op.axis);
  std::int64_t to = 0;
  for (std::int64_t o = 0; o < sizes.outer; ++o)
    for (const std::int64_t index : op.indices) {
      visit(to, (o * sizes.size + index) * sizes.inner, sizes.inner);
      to += sizes.inner;
    }
}

template <class T>
void select_value(const TensorCall<T>& call, T* output) {
  each_selected(call.op, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    put(false, count, output + to, [x = call.operands[0] + from](std::int64_t i) { return x[i]; });
  });
}

template <class T>
void select_gradient(const TensorCall<T>& call, std::size_t, T* to) {
  each_selected(call.op, [&](std::int64_t from, std::int64_t place, std::int64_t count) {
    put(true, count, to + place, [g = call.d_output + from](std::int64_t i) { return g[i]; });
  });
}

/// Calls visit(place in the output, place in the operand, count) for each run of an operand of a concatenation.
template <class Visit>
void each_part(const TensorOperation& op, std::size_t operand, Visit&& visit) {
  std::int64_t before = 0;
  for (std::size_t i = 0; i < operand; ++i) before += op.operands[i].shape[op.axis];
  const AxisSizes whole = axis_sizes(op.shape, op.axis);
  const std::int64_t count = op.operands[operand].shape[op.axis] * whole.inner;
  for (std::int64_t o = 0; o < whole.outer; ++o) visit((o * whole.size + before) * whole.inner, o * count, count);
}

template <class T>
void concat_value(const TensorCall<T>& call, T* output) {
  for (std::size_t k = 0; k < call.operands.size(); ++k)
    each_part(call.op, k, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
      put(false, count, output + to, [x = call.operands[k] + from](std::int64_t i) { return x[i]; });
    });
}

template <class T>
void concat_gradient(const TensorCall<T>& call, std::size_t operand, T* to) {
  each_part(call.op, operand, [&](std::int64_t from, std::int64_t place, std::int64_t count) {
    put(true, count, to + place, [g = call.d_output + from](std::int64_t i) { return g[i]; });
  });
}

}  // namespace

template <class T>
TensorKernels<T> arrangement_kernels(TensorFunction function) {
  switch (function) {
    case TensorFunction::View:
      return {view_value<T>, view_gradient<T>};
    case TensorFunction::Select:
      return {select_value<T>, select_gradient<T>};
    case TensorFunction::Concat:
      return {concat_value<T>, concat_gradient<T>};
    default:
      return {};
  }
}
template TensorKernels<float> arrangement_kernels<float>(TensorFunction);
template TensorKernels<double> arrangement_kernels<double>(TensorFunction);

}  // namespace stagecraft::cpu
