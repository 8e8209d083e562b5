// Tensor operations against their definitions, number by number, and their gradients against finite differences.
// tensor_images_test.cpp has convolutions, pooling and batch norms.

#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "tests/backends/cpu/tensor_case.hpp"

namespace stagecraft::tensor_test {

namespace {

using enum TensorFunction;

Real one_of(TensorFunction f, Real x) {
  switch (f) {
    case Not:
      return x == 0 ? 1 : 0;
    case Negate:
      return -x;
    case Reciprocal:
      return 1 / x;
    case SquareRoot:
      return std::sqrt(x);
    case Exponential:
      return std::exp(x);
    case Logarithm:
      return std::log(x);
    case Sine:
      return std::sin(x);
    case Cosine:
      return std::cos(x);
    case Relu:
      return x > 0 ? x : 0;
    case Tanh:
      return std::tanh(x);
    case Sigmoid:
      return 1 / (1 + std::exp(-x));
    case ErrorFunction:
      return std::erf(x);
    case Gelu:
      return x / 2 * (1 + std::erf(x / std::sqrt(Real{2})));
    default:
      REQUIRE(f == GeluTanh);
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(Real{-1})) * (x + 0.044715L * x * x * x)));
  }
}

Real two_of(TensorFunction f, Real a, Real b) {
  switch (f) {
    case Add:
      return a + b;
    case Subtract:
      return a - b;
    case Multiply:
      return a * b;
    case Divide:
      return a / b;
    case Power:
      return std::pow(a, b);
    case Equal:
      return a == b ? 1 : 0;
    case Less:
      return a < b ? 1 : 0;
    case LessOrEqual:
      return a <= b ? 1 : 0;
    case And:
      return a != 0 && b != 0 ? 1 : 0;
    case Minimum:
      return std::min(a, b);
    case Maximum:
      return std::max(a, b);
    default:
      REQUIRE(f == Or);
      return a != 0 || b != 0 ? 1 : 0;
  }
}

Real product_at(const TensorOperation& op, const std::vector<Numbers>& x, const TensorShape& index) {
  const TensorShape &a = op.operands[0].shape, &b = op.operands[1].shape;
  const std::int64_t inner = op.first_transposed ? a[a.size() - 2] : a.back();
  Real sum = 0;
  for (std::int64_t k = 0; k < inner; ++k) {
    TensorShape left = index, right = index;
    left.back() = k, right[right.size() - 2] = k;
    if (op.first_transposed) std::swap(left.back(), left[left.size() - 2]);
    if (op.second_transposed) std::swap(right.back(), right[right.size() - 2]);
    sum += x[0][place_of(a, left)] * x[1][place_of(b, right)];
  }
  return sum;
}

Real sum_at(const TensorOperation& op, const Numbers& x, std::int64_t i) {
  const TensorShape& from = op.operands[0].shape;
  Real sum = 0;
  std::int64_t count = 0;
  for (std::int64_t j = 0; j < std::ssize(x); ++j)
    if (place_of(op.shape, index_of(j, from)) == i) sum += x[j], ++count;
  return op.function == Mean ? sum / count : sum;
}

Real row_at(const TensorOperation& op, const Numbers& x, std::int64_t i) {
  const std::int64_t first = i / op.length * op.length;
  Real sum = 0, squares = 0, exponentials = 0;
  for (std::int64_t j = first; j < first + op.length; ++j) sum += x[j], exponentials += std::exp(x[j]);
  if (op.function == Softmax) return std::exp(x[i]) / exponentials;
  const Real mean = op.function == Normalize ? sum / op.length : 0;
  for (std::int64_t j = first; j < first + op.length; ++j) squares += (x[j] - mean) * (x[j] - mean);
  return (x[i] - mean) / std::sqrt(squares / op.length + static_cast<Real>(op.epsilon));
}

Real concatenated_at(const TensorOperation& op, const std::vector<Numbers>& x, TensorShape index) {
  std::size_t k = 0;
  for (; index[op.axis] >= op.operands[k].shape[op.axis]; ++k) index[op.axis] -= op.operands[k].shape[op.axis];
  return x[k][place_of(op.operands[k].shape, index)];
}

Real number_at(const TensorOperation& op, const std::vector<Numbers>& x, std::int64_t i) {
  TensorShape index = index_of(i, op.shape);
  const auto operand = [&](std::size_t k) { return x[k][place_of(op.operands[k].shape, index)]; };
  switch (op.function) {
    case View: {
      std::int64_t place = op.offset;
      for (std::size_t d = 0; d < index.size(); ++d) place += index[d] * op.strides[d];
      return x[0][place];
    }
    case Select:
      index[op.axis] = op.indices[index[op.axis]];
      return operand(0);
    case Concat:
      return concatenated_at(op, x, index);
    case Product:
      return product_at(op, x, index);
    case Sum:
    case Mean:
      return sum_at(op, x[0], i);
    case Softmax:
    case Normalize:
    case Scale:
      return row_at(op, x[0], i);
    case TensorFunction::Where:
      return operand(0) != 0 ? operand(1) : operand(2);
    default:
      return x.size() == 1 ? one_of(op.function, operand(0)) : two_of(op.function, operand(0), operand(1));
  }
}

// ---------------------------------------------------------------- cases

TensorOperation view(TensorShape shape, TensorOperand from, std::int64_t offset, TensorShape strides) {
  TensorOperation op = tensor(View, std::move(shape), {std::move(from)});
  op.offset = offset, op.strides = std::move(strides);
  return op;
}

TensorOperation product(TensorShape shape, TensorOperand a, TensorOperand b, bool first = false, bool second = false) {
  TensorOperation op = tensor(Product, std::move(shape), {std::move(a), std::move(b)});
  op.first_transposed = first, op.second_transposed = second;
  return op;
}

TensorOperation rows(TensorFunction f, TensorShape shape, std::int64_t length) {
  TensorOperation op = tensor(f, shape, {input(shape)});
  op.length = length, op.epsilon = 0.01;
  return op;
}

TensorOperation selection(TensorShape shape, TensorOperand from, std::size_t axis, std::vector<std::int64_t> indices) {
  TensorOperation op = tensor(Select, std::move(shape), {std::move(from)});
  op.axis = axis, op.indices = std::move(indices);
  return op;
}

TensorOperation concatenation(TensorShape shape, std::size_t axis, std::vector<TensorOperand> parts) {
  TensorOperation op = tensor(Concat, std::move(shape), std::move(parts));
  op.axis = axis;
  return op;
}

std::vector<TensorOperation> arithmetic_cases() {
  std::vector<TensorOperation> cases;
  for (const TensorFunction f : {Add, Subtract, Multiply, Divide, Minimum, Maximum}) {
    cases.push_back(tensor(f, {2, 3, 4}, {input({2, 3, 4}), input({3, 1})}));
    cases.push_back(tensor(f, {2, 3}, {constant({}, {3}), input({2, 3})}));
    cases.push_back(tensor(f, {}, {input({}), input({})}));
    if (!takes_weights(f)) continue;
    cases.push_back(tensor(f, {2, 3, 4}, {weights({4}), input({2, 3, 4})}));
    cases.push_back(tensor(f, {2, 3}, {input({2, 3}), weights({})}));
  }
  for (const double exponent : {2.0, 3.0, 0.5})
    cases.push_back(tensor(Power, {2, 5}, {input({2, 5}), constant({}, {exponent})}));
  for (const TensorFunction f : {Equal, Less, LessOrEqual, And, Or})
    cases.push_back(tensor(f, {2, 3}, {input({2, 3}), constant({3}, {0, 1, -1})}));
  for (int f = static_cast<int>(Not); f <= static_cast<int>(GeluTanh); ++f)
    cases.push_back(tensor(static_cast<TensorFunction>(f), {3, 7}, {input({3, 7})}));
  cases.push_back(
      tensor(TensorFunction::Where, {2, 3}, {constant({2, 3}, {1, 0, 0, 1, 1, 0}), input({2, 3}), weights({3})}));
  return cases;
}

std::vector<TensorOperation> other_cases() {
  return {
      view({4, 2, 3}, input({2, 3, 4}), 0, {1, 12, 4}),
      view({2, 2}, input({3, 4}), 9, {-4, 2}),
      view({3, 2, 4}, weights({2, 1}), 0, {0, 1, 0}),
      view({2, 2}, constant({}, {1.5}), 0, {0, 0}),
      selection({2, 4, 3}, input({2, 5, 3}), 1, {4, 0, 0, 2}),
      selection({3, 2}, weights({6, 2}), 0, {5, 1, 5}),
      concatenation({2, 6, 2}, 1, {input({2, 1, 2}), weights({2, 2, 2}), input({2, 3, 2})}),
      product({5, 3}, input({5, 4}), weights({4, 3})),
      product({5, 3}, input({5, 4}), weights({3, 4}), false, true),
      product({5, 3}, input({4, 5}), input({4, 3}), true, false),
      product({5, 3}, weights({5, 4}), input({4, 3})),
      product({2, 3, 2, 5}, input({2, 1, 2, 4}), input({3, 4, 5})),
      product({2, 2, 5}, input({2, 2, 4}), input({1, 5, 4}), false, true),
      tensor(Sum, {2, 1, 4}, {input({2, 3, 4})}),
      tensor(Mean, {1, 3, 1}, {input({2, 3, 4})}),
      tensor(Mean, {1, 1}, {weights({3, 4})}),
      rows(Softmax, {2, 3, 5}, 5),
      rows(Softmax, {2, 3, 5}, 15),
      rows(Normalize, {3, 8}, 8),
      rows(Normalize, {2, 3, 2}, 6),
      rows(Scale, {3, 8}, 8),
  };
}

std::vector<TensorOperation> cases() {
  std::vector<TensorOperation> joined = arithmetic_cases();
  const std::vector<TensorOperation> others = other_cases();
  joined.insert(joined.end(), others.begin(), others.end());
  return joined;
}

}  // namespace

TEST_CASE("tensor operations are what their definitions say") { check_outputs(cases(), number_at); }

TEST_CASE("gradients of tensor operations are finite differences") { check_gradients(cases(), number_at); }

TEST_CASE("gradients of tensor operations are added, and equal calls give equal bits") { check_added(cases()); }

TEST_CASE("every other tensor function but the unknown one has a case and a kernel") {
  std::set<TensorFunction> expected;
  for (int f = static_cast<int>(Unknown) + 1; f <= static_cast<int>(GeluTanh); ++f)
    if (f < static_cast<int>(BatchNorm) || f > static_cast<int>(AveragePool))
      expected.insert(static_cast<TensorFunction>(f));
  CHECK(functions_of(cases()) == expected);
  Operation unknown{.kind = OperationKind::Tensor};
  unknown.tensor = std::make_shared<const TensorOperation>(tensor(Unknown, {2}, {input({2})}));
  CHECK(!cpu::has_kernel(unknown));
}

}  // namespace stagecraft::tensor_test
