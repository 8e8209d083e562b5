// Tensor functions that add up: matrix products with leading dimensions, sums and means.

#include <algorithm>

#include "backends/cpu/loops.hpp"
#include "backends/cpu/matrix.hpp"
#include "backends/cpu/tensor_functions.hpp"

namespace stagecraft::cpu {
namespace {

/// The matrices of an array: its last two dimensions.
struct Matrices {
  std::int64_t rows = 1, columns = 1;
  TensorShape strides;  ///< From one to the next, along each leading dimension of the product.

  template <class T>
  MatrixView<T> at(T* data, std::int64_t place) const {
    return view(data + place, rows, columns);
  }
};

Matrices matrices_of(const TensorShape& shape, const TensorShape& leading) {
  Matrices m{shape[shape.size() - 2], shape.back(), {}};
  m.strides = broadcast_strides(TensorShape(shape.begin(), shape.end() - 2), leading);
  for (std::int64_t& stride : m.strides) stride *= m.rows * m.columns;
  return m;
}

/// Calls visit(product, first factor, second factor) with the places of the matrices of each product.
template <class Visit>
void each_product(const TensorOperation& op, Visit&& visit) {
  const TensorShape leading(op.shape.begin(), op.shape.end() - 2);
  const Matrices y = matrices_of(op.shape, leading), a = matrices_of(op.operands[0].shape, leading),
                 b = matrices_of(op.operands[1].shape, leading);
  const std::int64_t size = y.rows * y.columns;
  walk<2>(leading, {a.strides, b.strides},
          [&](std::int64_t i, const auto& at) { visit(y, i * size, a, at[0], b, at[1]); });
}

template <class T>
void product_value(const TensorCall<T>& call, T* output) {
  each_product(call.op, [&](const Matrices& y, std::int64_t to, const Matrices& a, std::int64_t first,
                            const Matrices& b, std::int64_t second) {
    const auto product = call.op.first_transposed    ? multiply_first_transposed<T>
                         : call.op.second_transposed ? multiply_second_transposed<T>
                                                     : multiply<T>;
    product(false, y.at(output, to), a.at(call.operands[0], first), b.at(call.operands[1], second));
  });
}

/// For y = a b: da = dy b^T, db = a^T dy. A factor that is stored transposed has the transpose of that.
template <class T>
void product_gradient(const TensorCall<T>& call, std::size_t operand, T* to) {
  each_product(call.op, [&](const Matrices& y, std::int64_t from, const Matrices& a, std::int64_t first,
                            const Matrices& b, std::int64_t second) {
    const auto dy = y.at(call.d_output, from);
    if (operand == 0) {
      const auto other = b.at(call.operands[1], second);
      if (call.op.first_transposed)
        multiply_second_transposed<T>(true, a.at(to, first), other, dy);
      else if (call.op.second_transposed)
        multiply<T>(true, a.at(to, first), dy, other);
      else
        multiply_second_transposed<T>(true, a.at(to, first), dy, other);
      return;
    }
    const auto other = a.at(call.operands[0], first);
    if (call.op.first_transposed)
      multiply<T>(true, b.at(to, second), other, dy);
    else if (call.op.second_transposed)
      multiply_first_transposed<T>(true, b.at(to, second), dy, other);
    else
      multiply_first_transposed<T>(true, b.at(to, second), other, dy);
  });
}

/// Calls visit(place in the operand, place in the output).
template <class Visit>
void each_addend(const TensorOperation& op, Visit&& visit) {
  const TensorShape& from = op.operands.front().shape;
  walk<1>(from, {broadcast_strides(op.shape, from)}, [&](std::int64_t i, const auto& at) { visit(i, at[0]); });
}

/// What a sum is multiplied by.
template <class T>
T factor_of(const TensorOperation& op) {
  if (op.function == TensorFunction::Sum) return 1;
  return static_cast<T>(numbers_of(op.shape)) / static_cast<T>(numbers_of(op.operands.front().shape));
}

template <class T>
void sum_value(const TensorCall<T>& call, T* output) {
  const std::int64_t count = numbers_of(call.op.shape);
  std::fill_n(output, count, T{0});
  each_addend(call.op, [output, x = call.operands[0]](std::int64_t from, std::int64_t to) { output[to] += x[from]; });
  for (std::int64_t i = 0; i < count; ++i) output[i] *= factor_of<T>(call.op);
}

template <class T>
void sum_gradient(const TensorCall<T>& call, std::size_t, T* to) {
  each_addend(call.op, [=, factor = factor_of<T>(call.op), g = call.d_output](std::int64_t i, std::int64_t from) {
    to[i] += g[from] * factor;
  });
}

}  // namespace

template <class T>
TensorKernels<T> sum_kernels(TensorFunction function) {
  switch (function) {
    case TensorFunction::Product:
      return {product_value<T>, product_gradient<T>};
    case TensorFunction::Sum:
    case TensorFunction::Mean:
      return {sum_value<T>, sum_gradient<T>};
    default:
      return {};
  }
}
template TensorKernels<float> sum_kernels<float>(TensorFunction);
template TensorKernels<double> sum_kernels<double>(TensorFunction);

}  // namespace stagecraft::cpu
