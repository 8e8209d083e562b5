// Elementwise operators with broadcasting: one operation for each number of the output. The gradient of an input that
// was broadcast is a sum over all these numbers.

#include <algorithm>
#include <cmath>

#include "models/onnx/operator.hpp"

namespace stagecraft::onnx {
namespace {

constexpr std::uint32_t kFirst = reads_input(0), kSecond = reads_input(1);

/// The number of `t` at index `i` of the shape to which it is broadcast.
double broadcast_value(const Tensor& t, const Shape& shape, std::size_t i) {
  std::size_t at = 0, step = 1;
  for (std::size_t back = 0; back < shape.size(); ++back) {
    const std::size_t size = shape[shape.size() - 1 - back];
    const std::size_t place = i % size;
    i /= size;
    if (back >= t.shape.size()) continue;
    const std::size_t own = t.shape[t.shape.size() - 1 - back];
    if (own != 1) at += place * step;
    step *= own;
  }
  return (*t.values)[at];
}

bool is_whole(Type type) { return !is_float(type); }

Tensor result(const Call& c, bool logic) {
  Shape shape = c.in(0).shape;
  bool known = c.op.value != nullptr && c.in(0).values;
  for (std::size_t i = 1; i < c.size(); ++i) {
    shape = broadcast(c, shape, c.in(i).shape);
    known = known && c.in(i).values;
  }
  Tensor y = sized(c, logic ? Type::Bool : c.in(0).type, std::move(shape));
  if (!known || y.numbers() > kMostValues) return y;
  y.values.emplace(static_cast<std::size_t>(y.numbers()));
  for (std::size_t n = 0; n < y.values->size(); ++n) {
    double value = broadcast_value(c.in(0), y.shape, n);
    for (std::size_t i = 1; i < c.size(); ++i) value = c.op.value(value, broadcast_value(c.in(i), y.shape, n));
    (*y.values)[n] = c.op.name == "Div" && is_whole(y.type) ? std::trunc(value) : value;
  }
  return y;
}

double summed(const Tensor& input, double n) { return input.numbers() < n ? n : 0; }

/// Sum, difference, maximum and minimum: every input has an equal gradient.
Outcome sums(const Call& c) {
  Tensor y = result(c, false);
  const double n = y.numbers();
  Outcome outcome{{std::move(y)}, c.op.forward * n * std::max(1.0, static_cast<double>(c.size()) - 1)};
  if (!c.op.gradient) return outcome;
  for (std::size_t i = 0; i < c.size(); ++i)
    outcome.gradients.emplace_back(
        Gradient{c.op.gradient->work * n + summed(c.in(i), n), c.op.gradient->reads ? reads_input(i) : 0});
  return outcome;
}

Outcome logic(const Call& c) {
  Tensor y = result(c, true);
  const double n = y.numbers();
  return {{std::move(y)}, n};
}

Outcome difference(const Call& c) {
  c.in(1);
  Outcome outcome = sums(c);
  outcome.gradients.at(1)->work += outcome.outputs.front().numbers();  // The second gradient has the opposite sign.
  return outcome;
}

/// Each gradient is a product with the other input.
Outcome product(const Call& c) {
  Tensor y = result(c, false);
  const double n = y.numbers();
  Outcome outcome{{std::move(y)}, n};
  outcome.gradients = {Gradient{n + summed(c.in(0), n), kSecond}, Gradient{n + summed(c.in(1), n), kFirst}};
  return outcome;
}

/// d(a/b) = da/b - db a/b^2.
Outcome quotient(const Call& c) {
  Outcome outcome = product(c);
  outcome.gradients[1] = Gradient{3 * outcome.forward + summed(c.in(1), outcome.forward), kFirst | kSecond};
  return outcome;
}

/// The exponent is taken as given.
Outcome power(const Call& c) {
  Outcome outcome = product(c);
  outcome.gradients = {Gradient{3 * outcome.forward, kFirst}};
  return outcome;
}

/// x, or a learnt slope times x.
Outcome prelu(const Call& c) {
  const double n = c.in(0).numbers();
  return {{sized(c, c.in(0).type, c.in(0).shape)}, 2 * n, {Gradient{2 * n, kFirst}, Gradient{2 * n, kFirst}}};
}

Outcome where(const Call& c) {
  Tensor y = sized(c, c.in(1).type, broadcast(c, broadcast(c, c.in(0).shape, c.in(1).shape), c.in(2).shape));
  const double n = y.numbers();
  if (c.in(0).values && c.in(1).values && c.in(2).values && n <= kMostValues) {
    y.values.emplace(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < y.values->size(); ++i)
      (*y.values)[i] = broadcast_value(c.in(broadcast_value(c.in(0), y.shape, i) != 0 ? 1 : 2), y.shape, i);
  }
  return {{std::move(y)}, n, {{}, Gradient{n + summed(c.in(1), n), kFirst}, Gradient{n + summed(c.in(2), n), kFirst}}};
}

double remainder_of(double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); }
double quotient_of(double a, double b) { return b == 0 ? 0 : a / b; }

const Operator kOperators[] = {
    {"Add", sums, 1, Gradient{}, [](double a, double b) { return a + b; }},
    {"Sum", sums, 1, Gradient{}, [](double a, double b) { return a + b; }},
    {"Mean", sums, 1, Gradient{1, 0}},
    {"Max", sums, 1, Gradient{1, kFirst}, [](double a, double b) { return std::max(a, b); }},
    {"Min", sums, 1, Gradient{1, kFirst}, [](double a, double b) { return std::min(a, b); }},
    {"Sub", difference, 1, Gradient{}, [](double a, double b) { return a - b; }},
    {"Mul", product, 1, Gradient{}, [](double a, double b) { return a * b; }},
    {"Div", quotient, 1, Gradient{}, quotient_of},
    {"Pow", power, 1, Gradient{}, [](double a, double b) { return std::pow(a, b); }},
    {"Mod", sums, 1, {}, remainder_of},
    {"PRelu", prelu},
    {"Where", where},
    {"And", logic, 1, {}, [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }},
    {"Or", logic, 1, {}, [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }},
    {"Xor", logic, 1, {}, [](double a, double b) { return (a != 0) != (b != 0) ? 1.0 : 0.0; }},
    {"Equal", logic, 1, {}, [](double a, double b) { return a == b ? 1.0 : 0.0; }},
    {"Greater", logic, 1, {}, [](double a, double b) { return a > b ? 1.0 : 0.0; }},
    {"Less", logic, 1, {}, [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    {"GreaterOrEqual", logic, 1, {}, [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
    {"LessOrEqual", logic, 1, {}, [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
};

}  // namespace

Operators arithmetic() { return kOperators; }

}  // namespace stagecraft::onnx
