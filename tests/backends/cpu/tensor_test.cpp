// Tensor operations against their definitions, number by number, and their gradients against finite differences.

#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "tests/backends/cpu/trial.hpp"

namespace stagecraft::tensor_test {
using namespace stagecraft::test;

namespace {

using Real = long double;
using Numbers = std::vector<Real>;
using enum TensorFunction;

TensorShape index_of(std::int64_t i, const TensorShape& shape) {
  TensorShape index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; i /= shape[d]) index[d] = i % shape[d];
  return index;
}

/// The place of an index in an array, whose dimensions of one entry stand for all.
std::int64_t place_of(const TensorShape& shape, const TensorShape& index) {
  std::int64_t place = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t i = index[index.size() - shape.size() + d];
    place = place * shape[d] + (shape[d] == 1 ? 0 : i);
  }
  return place;
}

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

/// Calls visit(place in the window, place in the array) for each number of the window at `index` that is no padding.
/// The array has the dimensions `from` after its channels.
template <class Visit>
void each_in_window(const TensorWindow& w, const TensorShape& from, const TensorShape& index, Visit&& visit) {
  for (std::int64_t k = 0; k < numbers_of(w.kernel); ++k) {
    const TensorShape within = index_of(k, w.kernel);
    TensorShape at(from.size());
    bool is_inside = true;
    for (std::size_t d = 0; d < from.size(); ++d) {
      at[d] = index[d + 2] * w.strides[d] + within[d] * w.dilations[d] - w.before[d];
      is_inside = is_inside && at[d] >= 0 && at[d] < from[d];
    }
    if (is_inside) visit(k, place_of(from, at));
  }
}

TensorShape spatial(const TensorShape& shape) { return {shape.begin() + 2, shape.end()}; }

Real convolution_at(const TensorOperation& op, const std::vector<Numbers>& x, const TensorShape& index) {
  const TensorShape &a = op.operands[0].shape, &b = op.operands[1].shape, from = spatial(a);
  const std::int64_t first = index[1] / (b[0] / op.groups) * b[1], kernel = numbers_of(op.window.kernel);
  Real sum = 0;
  for (std::int64_t c = 0; c < b[1]; ++c)
    each_in_window(op.window, from, index, [&](std::int64_t k, std::int64_t place) {
      const std::int64_t channel = index[0] * a[1] + first + c;
      sum += x[0][channel * numbers_of(from) + place] * x[1][(index[1] * b[1] + c) * kernel + k];
    });
  return sum;
}

Real pooled_at(const TensorOperation& op, const Numbers& x, const TensorShape& index) {
  const TensorShape& a = op.operands[0].shape;
  const std::int64_t channel = (index[0] * a[1] + index[1]) * numbers_of(spatial(a));
  Real largest = -1000, sum = 0, count = 0;
  each_in_window(op.window, spatial(a), index, [&](std::int64_t, std::int64_t place) {
    largest = std::max(largest, x[channel + place]);
    sum += x[channel + place], ++count;
  });
  if (op.function == MaxPool) return largest;
  return sum / (op.counts_padding ? numbers_of(op.window.kernel) : count);
}

Real channel_norm_at(const TensorOperation& op, const std::vector<Numbers>& x, std::int64_t i) {
  const std::int64_t channel = index_of(i, op.shape)[1];
  Real mean = 0, variance = 0, count = 0;
  const auto each = [&](auto visit) {
    for (std::int64_t j = 0; j < std::ssize(x[0]); ++j)
      if (index_of(j, op.shape)[1] == channel) visit(x[0][j]);
  };
  each([&](Real v) { mean += v, ++count; });
  mean /= count;
  each([&](Real v) { variance += (v - mean) * (v - mean) / count; });
  if (x.size() > 2) mean = x[2][channel], variance = x[3][channel];
  return x[1][channel] * (x[0][i] - mean) / std::sqrt(variance + static_cast<Real>(op.epsilon));
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
    case BatchNorm:
      return channel_norm_at(op, x, i);
    case Convolution:
      return convolution_at(op, x, index);
    case MaxPool:
    case AveragePool:
      return pooled_at(op, x[0], index);
    case TensorFunction::Where:
      return operand(0) != 0 ? operand(1) : operand(2);
    default:
      return x.size() == 1 ? one_of(op.function, operand(0)) : two_of(op.function, operand(0), operand(1));
  }
}

Numbers output_of(const TensorOperation& op, const std::vector<Numbers>& x) {
  Numbers y;
  for (std::int64_t i = 0; i < numbers_of(op.shape); ++i) y.push_back(number_at(op, x, i));
  return y;
}

// ---------------------------------------------------------------- cases

TensorOperand input(TensorShape shape) { return {OperandSource::Input, std::move(shape)}; }
TensorOperand weights(TensorShape shape) { return {OperandSource::Weights, std::move(shape)}; }
TensorOperand constant(TensorShape shape, std::vector<double> values) {
  return {OperandSource::Constant, std::move(shape), std::move(values)};
}

TensorOperation tensor(TensorFunction f, TensorShape shape, std::vector<TensorOperand> operands) {
  return {.function = f, .name = "case", .shape = std::move(shape), .operands = std::move(operands)};
}

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

TensorOperation channel_norm(TensorShape shape, std::vector<TensorOperand> operands) {
  TensorOperation op = tensor(BatchNorm, std::move(shape), std::move(operands));
  op.epsilon = 0.01;
  return op;
}

TensorOperation convolution(TensorShape shape, TensorOperand x, TensorOperand w, TensorWindow window,
                            std::int64_t groups = 1) {
  TensorOperation op = tensor(Convolution, std::move(shape), {std::move(x), std::move(w)});
  op.window = std::move(window), op.groups = groups;
  return op;
}

TensorOperation pool(TensorFunction f, TensorShape shape, TensorShape from, TensorWindow window,
                     bool counts_padding = false) {
  TensorOperation op = tensor(f, std::move(shape), {input(std::move(from))});
  op.window = std::move(window), op.counts_padding = counts_padding;
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

/// Windows in one to three dimensions, with strides, dilations, unequal padding, groups and several leading samples.
std::vector<TensorOperation> image_cases() {
  const TensorWindow plain{{3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, padded{{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}};
  const TensorWindow uneven{{2, 3}, {2, 1}, {1, 2}, {1, 0}, {0, 3}}, wide{{5}, {2}, {2}, {4}, {4}};
  const TensorWindow point{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
      cube{{2, 1, 2}, {1, 2, 1}, {1, 1, 1}, {0, 0, 1}, {0, 0, 1}};
  return {
      convolution({1, 4, 3, 4}, input({1, 2, 5, 6}), weights({4, 2, 3, 3}), plain),
      convolution({1, 3, 3, 4}, input({1, 2, 5, 7}), weights({3, 2, 3, 3}), padded),
      convolution({2, 4, 3, 5}, input({2, 4, 5, 6}), weights({4, 2, 2, 3}), uneven, 2),
      convolution({1, 4, 3, 3}, input({1, 4, 5, 5}), weights({4, 1, 3, 3}), plain, 4),
      convolution({1, 6, 3, 3}, input({1, 3, 5, 5}), weights({6, 1, 3, 3}), padded, 3),
      convolution({1, 5, 2, 3}, input({1, 3, 2, 3}), weights({5, 3, 1, 1}), point),
      convolution({1, 2, 5}, input({1, 3, 9}), input({2, 3, 5}), wide),
      convolution({1, 2, 2, 2, 5}, input({1, 2, 3, 3, 4}), weights({2, 2, 2, 1, 2}), cube),
      pool(MaxPool, {1, 2, 3, 4}, {1, 2, 5, 6}, plain),
      pool(MaxPool, {2, 2, 3, 4}, {2, 2, 5, 7}, padded),
      pool(MaxPool, {1, 1, 3, 5}, {1, 1, 5, 6}, uneven),
      pool(AveragePool, {1, 2, 3, 4}, {1, 2, 5, 7}, padded),
      pool(AveragePool, {2, 2, 3, 4}, {2, 2, 5, 7}, padded, true),
      pool(AveragePool, {1, 2, 5}, {1, 2, 9}, wide),
      channel_norm({1, 3, 2, 4}, {input({1, 3, 2, 4}), weights({3, 1, 1})}),
      channel_norm({2, 3, 5}, {input({2, 3, 5}), constant({3, 1}, {0.5, 1, -2})}),
      channel_norm({2, 3, 5},
                   {input({2, 3, 5}), weights({3, 1}), constant({3, 1}, {0.5, -1, 0}), constant({3, 1}, {0.5, 2, 1})}),
  };
}

std::vector<TensorOperation> cases() {
  std::vector<TensorOperation> joined = arithmetic_cases();
  for (const auto& more : {other_cases(), image_cases()}) joined.insert(joined.end(), more.begin(), more.end());
  return joined;
}

/// Numbers at which slopes are moderate: positive ones for roots, logarithms and powers, none near 0 for quotients.
void move_from_zero(TensorFunction f, std::vector<double>& numbers) {
  const bool is_positive = f == SquareRoot || f == Logarithm || f == Power;
  if (!is_positive && f != Divide && f != Reciprocal) return;
  for (double& x : numbers) x = is_positive ? std::abs(x) + 0.5 : x + std::copysign(0.5, x);
}

/// `whole` is computed for each of `parts`: the operation for each sample, or one for all of them where they share
/// statistics.
struct Case {
  Trial trial;
  TrialData data;
  TensorOperation whole;
  std::int64_t parts;
};

Case case_of(const TensorOperation& op, std::size_t width, std::int64_t samples = 2) {
  Case c{{to_text(op), {.kind = OperationKind::Tensor}, samples, {}}, {}, op, samples};
  if (op.function == BatchNorm && op.operands.size() == 2) {
    c.parts = 1;
    c.whole.shape[0] = c.whole.operands[0].shape[0] *= samples;
  }
  c.trial.op.columns = static_cast<int>(numbers_of(op.shape));
  c.trial.op.tensor = std::make_shared<const TensorOperation>(op);
  for (const TensorOperand& o : op.operands)
    if (o.source == OperandSource::Input) c.trial.columns.push_back(static_cast<int>(numbers_of(o.shape)));
  c.data = data_for(c.trial, width);
  for (std::vector<double>& numbers : c.data.inputs) move_from_zero(op.function, numbers);
  move_from_zero(op.function, c.data.weights);
  return c;
}

/// The operands of one part. `place` is their place among the inputs.
std::vector<Numbers> operands_of(const Case& c, std::int64_t part) {
  std::vector<Numbers> x;
  std::size_t place = 0;
  for (const TensorOperand& o : c.whole.operands) {
    const std::int64_t count = numbers_of(o.shape);
    if (o.source == OperandSource::Constant) x.emplace_back(o.values.begin(), o.values.end());
    if (o.source == OperandSource::Weights) x.emplace_back(c.data.weights.begin(), c.data.weights.begin() + count);
    if (o.source != OperandSource::Input) continue;
    const auto first = c.data.inputs[place++].begin() + part * count;
    x.emplace_back(first, first + count);
  }
  return x;
}

/// Central differences of the sum of the gradients times the outputs of a part, by each number of operand k.
Numbers slopes_of(const Case& c, std::int64_t part, std::size_t k) {
  constexpr Real step = 0x1p-21L;
  const TensorOperation& op = c.whole;
  std::vector<Numbers> x = operands_of(c, part);
  const auto objective = [&] {
    Real sum = 0;
    const Numbers y = output_of(op, x);
    for (std::size_t i = 0; i < y.size(); ++i)
      sum += y[i] * static_cast<Real>(c.data.d_output[static_cast<std::size_t>(part) * y.size() + i]);
    return sum;
  };
  Numbers slopes;
  for (std::size_t i = 0; i < x[k].size(); ++i) {
    const Real before = x[k][i];
    x[k][i] = before + step;
    const Real above = objective();
    x[k][i] = before - step;
    slopes.push_back((above - objective()) / (2 * step));
    x[k][i] = before;
  }
  return slopes;
}

void check_near(const std::vector<double>& actual, std::size_t first, const Numbers& expected, double tolerance) {
  REQUIRE(actual.size() >= first + expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(actual[first + i] == doctest::Approx(static_cast<double>(expected[i])).epsilon(tolerance).scale(1));
}

}  // namespace

TEST_CASE("tensor operations are what their definitions say") {
  for (const std::size_t width : kWidths)
    for (const TensorOperation& op : cases()) {
      CAPTURE(static_cast<int>(op.function));
      const Case c = case_of(op, width);
      CAPTURE(c.trial.name);
      REQUIRE(cpu::has_kernel(c.trial.op));
      const auto kernels = cpu::make_kernels(width);
      const ComputedTrial computed(*kernels, c.trial, c.data);
      for (std::int64_t part = 0; part < c.parts; ++part)
        check_near(computed.output, static_cast<std::size_t>(part * numbers_of(c.whole.shape)),
                   output_of(c.whole, operands_of(c, part)), width == 4 ? 1e-5 : 1e-13);
    }
}

TEST_CASE("gradients of tensor operations are finite differences") {
  for (const TensorOperation& op : cases()) {
    CAPTURE(static_cast<int>(op.function));
    const Case c = case_of(op, 8);
    CAPTURE(c.trial.name);
    const auto kernels = cpu::make_kernels(8);
    ComputedTrial computed(*kernels, c.trial, c.data);
    const auto d_inputs = computed.input_gradient();
    const std::vector<double> d_weights = computed.weight_gradient();
    Numbers sum;
    std::size_t input = 0;
    for (std::size_t k = 0; k < op.operands.size(); ++k) {
      if (op.operands[k].source == OperandSource::Constant) continue;
      const bool is_input = op.operands[k].source == OperandSource::Input;
      for (std::int64_t part = 0; part < c.parts; ++part) {
        const Numbers slopes = slopes_of(c, part, k);
        if (is_input) check_near(d_inputs[input], static_cast<std::size_t>(part) * slopes.size(), slopes, 1e-9);
        sum.resize(is_input ? sum.size() : slopes.size());
        for (std::size_t i = 0; i < slopes.size() && !is_input; ++i) sum[i] += slopes[i];
      }
      input += is_input;
    }
    check_near(d_weights, 0, sum, 1e-9);
  }
}

TEST_CASE("gradients of tensor operations are added, and equal calls give equal bits") {
  for (const TensorOperation& op : cases()) {
    CAPTURE(static_cast<int>(op.function));
    const Case c = case_of(op, 8);
    const auto kernels = cpu::make_kernels(8);
    const TrialResult once = compute(*kernels, c.trial, c.data), shifted = compute(*kernels, c.trial, c.data, 3);
    CHECK(once == shifted);
    ComputedTrial computed(*kernels, c.trial, c.data);
    const auto added = computed.input_gradient(true, 3);
    for (std::size_t i = 0; i < added.size(); ++i)
      for (std::size_t n = 0; n < added[i].size(); ++n)
        CHECK(added[i][n] == doctest::Approx(3 + once.d_inputs[i][n]).epsilon(1e-12));
  }
}

TEST_CASE("every tensor function but the unknown one has a case and a kernel") {
  std::set<TensorFunction> seen;
  for (const TensorOperation& op : cases()) seen.insert(op.function);
  CHECK(seen.size() == static_cast<std::size_t>(GeluTanh));
  Operation unknown{.kind = OperationKind::Tensor};
  unknown.tensor = std::make_shared<const TensorOperation>(tensor(Unknown, {2}, {input({2})}));
  CHECK(!cpu::has_kernel(unknown));
}

}  // namespace stagecraft::tensor_test
