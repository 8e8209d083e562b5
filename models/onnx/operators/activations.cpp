// Functions of one number, such as Relu, Exp, Round and Not. A comparison, an arithmetic operation and a function such
// as exp count as one each. Gradients use what is cheapest to keep, as in frameworks: y(1 - y) for a sigmoid, 1 - y^2
// for tanh.

#include <algorithm>
#include <cmath>

#include "models/onnx/operator.hpp"

namespace stagecraft::onnx {
namespace {

OperatorResult apply(const OperatorCall& c) {
  Tensor y = sized(c, c.input(0).type, c.input(0).shape);
  if (c.op.value && c.input(0).values) {
    y.values = *c.input(0).values;
    for (double& number : *y.values) number = c.op.value(number, 0);
  }
  const double n = y.numbers();
  OperatorResult result{{std::move(y)}, c.op.forward * n};
  if (c.op.gradient) result.gradients = {GradientWork{c.op.gradient->work * n, c.op.gradient->reads}};
  return result;
}

OperatorResult logic_of_one(const OperatorCall& c) {
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
  if (c.has(1)) result.gradients.emplace_back(GradientWork{result.outputs.front().numbers(), 0});
  return result;
}

const Operator activations_table[] = {
    {"Relu", apply, 1, GradientWork{1, kReadsOutput}, [](double x, double) { return std::max(x, 0.0); }},
    {"LeakyRelu", apply, 2, GradientWork{2, kReadsOutput}},
    {"ThresholdedRelu", apply, 1, GradientWork{1, kReadsOutput}},
    {"Elu", apply, 4, GradientWork{3, kReadsOutput}},
    {"Selu", apply, 5, GradientWork{3, kReadsOutput}},
    {"Celu", apply, 5, GradientWork{3, kReadsOutput}},
    {"Sigmoid", apply, 4, GradientWork{3, kReadsOutput}},
    {"HardSigmoid", apply, 4, GradientWork{3, kReadsOutput}},
    {"HardSwish", apply, 5, GradientWork{5, kReadsFirst}},
    {"Swish", apply, 5, GradientWork{6, kReadsFirst}},
    {"Mish", apply, 5, GradientWork{10, kReadsFirst}},
    {"Softplus", apply, 3, GradientWork{5, kReadsFirst}},
    {"Softsign", apply, 3, GradientWork{4, kReadsFirst}},
    {"Tanh", apply, 1, GradientWork{3, kReadsOutput}},
    {"Erf", apply, 1, GradientWork{5, kReadsFirst}},
    {"Gelu", gelu, 5, GradientWork{11, kReadsFirst}},
    {"Gelu", apply, 5, GradientWork{11, kReadsFirst}, nullptr, kMicrosoft},
    {"FastGelu", with_bias, 10, GradientWork{12, kReadsFirst}, nullptr, kMicrosoft},
    {"BiasGelu", with_bias, 6, GradientWork{12, kReadsFirst}, nullptr, kMicrosoft},
    {"QuickGelu", apply, 6, GradientWork{7, kReadsFirst}, nullptr, kMicrosoft},
    {"Exp", apply, 1, GradientWork{1, kReadsOutput}, [](double x, double) { return std::exp(x); }},
    {"Log", apply, 1, GradientWork{1, kReadsFirst}, [](double x, double) { return std::log(x); }},
    {"Sqrt", apply, 1, GradientWork{2, kReadsOutput}, [](double x, double) { return std::sqrt(x); }},
    {"Abs", apply, 1, GradientWork{1, kReadsFirst}, [](double x, double) { return std::abs(x); }},
    {"Neg", apply, 1, GradientWork{1, 0}, [](double x, double) { return -x; }},
    {"Reciprocal", apply, 1, GradientWork{3, kReadsOutput}, [](double x, double) { return 1 / x; }},
    {"Sin", apply, 1, GradientWork{2, kReadsFirst}},
    {"Cos", apply, 1, GradientWork{3, kReadsFirst}},
    {"Clip", apply, 2, GradientWork{2, kReadsFirst}},
    {"Floor", apply, 1, {}, [](double x, double) { return std::floor(x); }},
    {"Ceil", apply, 1, {}, [](double x, double) { return std::ceil(x); }},
    {"Round", apply, 1, {}, [](double x, double) { return std::nearbyint(x); }},
    {"Sign", apply, 1, {}, [](double x, double) { return x > 0   ? 1.0
                                                         : x < 0 ? -1.0
                                                                 : 0.0; }},
    {"Not", logic_of_one, 1, {}, [](double x, double) { return x == 0 ? 1.0 : 0.0; }},
    {"IsNaN", logic_of_one, 1},
    {"IsInf", logic_of_one, 1},
};

}  // namespace

Operators activations() { return activations_table; }

}  // namespace stagecraft::onnx
