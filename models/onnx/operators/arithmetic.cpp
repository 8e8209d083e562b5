// Elementwise operators with broadcasting: arithmetic, comparisons, logic and Where. Most take one operation for each
// number of the output. The gradient of an input that was broadcast is a sum over all these numbers.

#include <algorithm>
#include <cmath>

#include "models/onnx/operator.hpp"

namespace stagecraft::onnx {
namespace {

/// The number of `t` at index `i` of the shape to which it is broadcast.
double broadcast_value(const Tensor& t, const Shape& shape, std::size_t i) {
  std::size_t offset = 0, step = 1;
  for (std::size_t from_last = 0; from_last < shape.size(); ++from_last) {
    const std::size_t size = shape[shape.size() - 1 - from_last];
    const std::size_t index = i % size;
    i /= size;
    if (from_last >= t.shape.size()) continue;
    const std::size_t dimension = t.shape[t.shape.size() - 1 - from_last];
    if (dimension != 1) offset += index * step;
    step *= dimension;
  }
  return (*t.values)[offset];
}

bool is_whole(Type type) { return !is_float(type); }

Tensor broadcast_result(const OperatorCall& c, bool logic) {
  Shape shape = c.input(0).shape;
  bool has_values = c.op.value != nullptr && c.input(0).values;
  for (std::size_t i = 1; i < c.size(); ++i) {
    shape = broadcast(c, shape, c.input(i).shape);
    has_values = has_values && c.input(i).values;
  }
  Tensor y = sized(c, logic ? Type::Bool : c.input(0).type, std::move(shape));
  if (!has_values || y.numbers() > kMostValues) return y;
  y.values.emplace(static_cast<std::size_t>(y.numbers()));
  for (std::size_t n = 0; n < y.values->size(); ++n) {
    double value = broadcast_value(c.input(0), y.shape, n);
    for (std::size_t i = 1; i < c.size(); ++i) value = c.op.value(value, broadcast_value(c.input(i), y.shape, n));
    (*y.values)[n] = c.op.name == "Div" && is_whole(y.type) ? std::trunc(value) : value;
  }
  return y;
}

double summed(const Tensor& input, double n) { return input.numbers() < n ? n : 0; }

/// Sum, difference, maximum and minimum: every input has an equal gradient.
OperatorResult sums(const OperatorCall& c) {
  Tensor y = broadcast_result(c, false);
  const double n = y.numbers();
  OperatorResult result{{std::move(y)}, c.op.forward * n * std::max(1.0, static_cast<double>(c.size()) - 1)};
  if (!c.op.gradient) return result;
  for (std::size_t i = 0; i < c.size(); ++i)
    result.gradients.emplace_back(
        GradientWork{c.op.gradient->work * n + summed(c.input(i), n), c.op.gradient->reads ? reads_input(i) : 0});
  return result;
}

OperatorResult logic_of_two(const OperatorCall& c) {
  Tensor y = broadcast_result(c, true);
  const double n = y.numbers();
  return {{std::move(y)}, n};
}

OperatorResult difference(const OperatorCall& c) {
  c.input(1);
  OperatorResult result = sums(c);
  result.gradients.at(1)->work += result.outputs.front().numbers();  // The second gradient has the opposite sign.
  return result;
}

/// Each gradient is a product with the other input.
OperatorResult product(const OperatorCall& c) {
  Tensor y = broadcast_result(c, false);
  const double n = y.numbers();
  OperatorResult result{{std::move(y)}, n};
  result.gradients = {GradientWork{n + summed(c.input(0), n), kReadsSecond},
                      GradientWork{n + summed(c.input(1), n), kReadsFirst}};
  return result;
}

/// d(a/b) = da/b - db a/b^2.
OperatorResult quotient(const OperatorCall& c) {
  OperatorResult result = product(c);
  result.gradients[1] =
      GradientWork{3 * result.forward + summed(c.input(1), result.forward), kReadsFirst | kReadsSecond};
  return result;
}

/// The exponent is taken as given.
OperatorResult power(const OperatorCall& c) {
  OperatorResult result = product(c);
  result.gradients = {GradientWork{3 * result.forward, kReadsFirst}};
  return result;
}

/// x, or a learned slope times x.
OperatorResult prelu(const OperatorCall& c) {
  const double n = c.input(0).numbers();
  return {{sized(c, c.input(0).type, c.input(0).shape)},
          2 * n,
          {GradientWork{2 * n, kReadsFirst}, GradientWork{2 * n, kReadsFirst}}};
}

OperatorResult where(const OperatorCall& c) {
  Tensor y =
      sized(c, c.input(1).type, broadcast(c, broadcast(c, c.input(0).shape, c.input(1).shape), c.input(2).shape));
  const double n = y.numbers();
  if (c.input(0).values && c.input(1).values && c.input(2).values && n <= kMostValues) {
    y.values.emplace(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < y.values->size(); ++i)
      (*y.values)[i] = broadcast_value(c.input(broadcast_value(c.input(0), y.shape, i) != 0 ? 1 : 2), y.shape, i);
  }
  return {
      {std::move(y)},
      n,
      {{}, GradientWork{n + summed(c.input(1), n), kReadsFirst}, GradientWork{n + summed(c.input(2), n), kReadsFirst}}};
}

double remainder_of(double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); }
double quotient_of(double a, double b) { return b == 0 ? 0 : a / b; }

const Operator arithmetic_table[] = {
    {"Add", sums, 1, GradientWork{}, [](double a, double b) { return a + b; }},
    {"Sum", sums, 1, GradientWork{}, [](double a, double b) { return a + b; }},
    {"Mean", sums, 1, GradientWork{1, 0}},
    {"Max", sums, 1, GradientWork{1, kReadsFirst}, [](double a, double b) { return std::max(a, b); }},
    {"Min", sums, 1, GradientWork{1, kReadsFirst}, [](double a, double b) { return std::min(a, b); }},
    {"Sub", difference, 1, GradientWork{}, [](double a, double b) { return a - b; }},
    {"Mul", product, 1, GradientWork{}, [](double a, double b) { return a * b; }},
    {"Div", quotient, 1, GradientWork{}, quotient_of},
    {"Pow", power, 1, GradientWork{}, [](double a, double b) { return std::pow(a, b); }},
    {"Mod", sums, 1, {}, remainder_of},
    {"PRelu", prelu},
    {"Where", where},
    {"And", logic_of_two, 1, {}, [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }},
    {"Or", logic_of_two, 1, {}, [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }},
    {"Xor", logic_of_two, 1, {}, [](double a, double b) { return (a != 0) != (b != 0) ? 1.0 : 0.0; }},
    {"Equal", logic_of_two, 1, {}, [](double a, double b) { return a == b ? 1.0 : 0.0; }},
    {"Greater", logic_of_two, 1, {}, [](double a, double b) { return a > b ? 1.0 : 0.0; }},
    {"Less", logic_of_two, 1, {}, [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    {"GreaterOrEqual", logic_of_two, 1, {}, [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
    {"LessOrEqual", logic_of_two, 1, {}, [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
};

}  // namespace

Operators arithmetic() { return arithmetic_table; }

}  // namespace stagecraft::onnx
