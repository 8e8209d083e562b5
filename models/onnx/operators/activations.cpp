// Functions of one number. A comparison, an arithmetic operation and a function such as exp count as one each.
// Gradients use what is cheapest to keep, as in frameworks: y(1 - y) for a sigmoid, 1 - y^2 for tanh.

#include <algorithm>
#include <cmath>

#include "models/onnx/operator.hpp"

namespace stagecraft::onnx {
namespace {

constexpr std::uint32_t kIn = reads_input(0), kOut = kReadsOutput;
constexpr std::string_view kMicrosoft = "com.microsoft";

OperatorResult apply(const OperatorCall& c) {
  Tensor y = sized(c, c.input(0).type, c.input(0).shape);
  if (c.op.value && c.input(0).values) {
    y.values = *c.input(0).values;
    for (double& number : *y.values) number = c.op.value(number, 0);
  }
  const double n = y.numbers();
  OperatorResult result{{std::move(y)}, c.op.forward * n};
  if (c.op.gradient) result.gradients = {Gradient{c.op.gradient->work * n, c.op.gradient->reads}};
  return result;
}

OperatorResult logic(const OperatorCall& c) {
  OperatorResult result = apply(c);
  result.outputs.front().type = Type::Bool;
  return result;
}

/// x * tanh(...) instead of erf: nine operations (Hendrycks and Gimpel, 2016).
OperatorResult gelu(const OperatorCall& c) {
  OperatorResult result = apply(c);
  if (c.text("approximate", "none") == "tanh") result.forward = 9 * result.outputs.front().numbers();
  return result;
}

/// Adds a bias before the activation.
OperatorResult with_bias(const OperatorCall& c) {
  OperatorResult result = apply(c);
  if (c.has(1)) result.gradients.emplace_back(Gradient{result.outputs.front().numbers(), 0});
  return result;
}

const Operator kOperators[] = {
    {"Relu", apply, 1, Gradient{1, kOut}, [](double x, double) { return std::max(x, 0.0); }},
    {"LeakyRelu", apply, 2, Gradient{2, kOut}},
    {"ThresholdedRelu", apply, 1, Gradient{1, kOut}},
    {"Elu", apply, 4, Gradient{3, kOut}},
    {"Selu", apply, 5, Gradient{3, kOut}},
    {"Celu", apply, 5, Gradient{3, kOut}},
    {"Sigmoid", apply, 4, Gradient{3, kOut}},
    {"HardSigmoid", apply, 4, Gradient{3, kOut}},
    {"HardSwish", apply, 5, Gradient{5, kIn}},
    {"Swish", apply, 5, Gradient{6, kIn}},
    {"Mish", apply, 5, Gradient{10, kIn}},
    {"Softplus", apply, 3, Gradient{5, kIn}},
    {"Softsign", apply, 3, Gradient{4, kIn}},
    {"Tanh", apply, 1, Gradient{3, kOut}},
    {"Erf", apply, 1, Gradient{5, kIn}},
    {"Gelu", gelu, 5, Gradient{11, kIn}},
    {"Gelu", apply, 5, Gradient{11, kIn}, nullptr, kMicrosoft},
    {"FastGelu", with_bias, 10, Gradient{12, kIn}, nullptr, kMicrosoft},
    {"BiasGelu", with_bias, 6, Gradient{12, kIn}, nullptr, kMicrosoft},
    {"QuickGelu", apply, 6, Gradient{7, kIn}, nullptr, kMicrosoft},
    {"Exp", apply, 1, Gradient{1, kOut}, [](double x, double) { return std::exp(x); }},
    {"Log", apply, 1, Gradient{1, kIn}, [](double x, double) { return std::log(x); }},
    {"Sqrt", apply, 1, Gradient{2, kOut}, [](double x, double) { return std::sqrt(x); }},
    {"Abs", apply, 1, Gradient{1, kIn}, [](double x, double) { return std::abs(x); }},
    {"Neg", apply, 1, Gradient{1, 0}, [](double x, double) { return -x; }},
    {"Reciprocal", apply, 1, Gradient{3, kOut}, [](double x, double) { return 1 / x; }},
    {"Sin", apply, 1, Gradient{2, kIn}},
    {"Cos", apply, 1, Gradient{3, kIn}},
    {"Clip", apply, 2, Gradient{2, kIn}},
    {"Floor", apply, 1, {}, [](double x, double) { return std::floor(x); }},
    {"Ceil", apply, 1, {}, [](double x, double) { return std::ceil(x); }},
    {"Round", apply, 1, {}, [](double x, double) { return std::nearbyint(x); }},
    {"Sign", apply, 1, {}, [](double x, double) { return x > 0   ? 1.0
                                                         : x < 0 ? -1.0
                                                                 : 0.0; }},
    {"Not", logic, 1, {}, [](double x, double) { return x == 0 ? 1.0 : 0.0; }},
    {"IsNaN", logic, 1},
    {"IsInf", logic, 1},
};

}  // namespace

Operators activations() { return kOperators; }

}  // namespace stagecraft::onnx
