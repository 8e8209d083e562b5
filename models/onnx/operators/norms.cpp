// Norms and softmax, as the builders count them: four operations a number for batch normalization and five for layer
// normalization, forward and for each gradient; five for softmax (largest, difference, exp, sum, quotient) and four for
// its gradient y (g - sum(g y)). A norm keeps its input, softmax its output.

#include "models/onnx/operator.hpp"

namespace stagecraft::onnx {
namespace {

/// All outputs but the first are statistics with one number for each `per` numbers of the input.
void add_statistics(const OperatorCall& c, OperatorResult& result, const Shape& shape) {
  for (std::size_t i = 1; i < c.node.outputs.size(); ++i) result.outputs.push_back({Type::Float, shape});
}

/// The norm, then scale and bias, which are inputs 1 and 2 if given.
OperatorResult norm(const OperatorCall& c) {
  Tensor y = sized(c, c.input(0).type, c.input(0).shape);
  const double n = y.numbers(), work = c.op.forward * n;
  OperatorResult result{{std::move(y)}, work, {GradientWork{work, kReadsFirst}}};
  if (c.has(1)) result.gradients.emplace_back(GradientWork{work, kReadsFirst});
  if (c.has(2)) result.gradients.emplace_back(GradientWork{});
  return result;
}

/// Inputs 3 and 4, the running mean and variance, are not weights.
OperatorResult batch_norm(const OperatorCall& c) {
  OperatorResult result = norm(c);
  add_statistics(c, result, c.input(3).shape);
  return result;
}

OperatorResult layer_norm(const OperatorCall& c) {
  OperatorResult result = norm(c);
  const std::size_t axis = c.axis(c.integer("axis", -1), c.rank(0));
  Shape shape = c.input(0).shape;
  for (std::size_t d = axis; d < shape.size(); ++d) shape[d] = 1;
  add_statistics(c, result, shape);
  return result;
}

/// The norm of a sum of two inputs and a bias; weights are inputs 2 and 3. The fourth output is the sum.
OperatorResult skip_layer_norm(const OperatorCall& c) {
  Tensor y = sized(c, c.input(0).type, c.input(0).shape);
  const double n = y.numbers(), work = 5 * n;
  OperatorResult result{
      {y}, work + n, {GradientWork{work, kReadsFirst}, GradientWork{}, GradientWork{work, kReadsFirst}}};
  for (std::size_t i = 3; i < c.size(); ++i) result.gradients.emplace_back(GradientWork{});
  for (std::size_t i = 1; i < c.node.outputs.size(); ++i) result.outputs.push_back(y);
  return result;
}

OperatorResult softmax(const OperatorCall& c) {
  Tensor y = sized(c, c.input(0).type, c.input(0).shape);
  const double n = y.numbers();
  return {{std::move(y)}, c.op.forward * n, {GradientWork{4 * n, kReadsOutput}}};
}

/// Normalizes over a window of neighboring channels.
OperatorResult local_response(const OperatorCall& c) {
  Tensor y = sized(c, c.input(0).type, c.input(0).shape);
  const double work = (2 * static_cast<double>(c.integer("size", 1)) + 4) * y.numbers();
  return {{std::move(y)}, work, {GradientWork{work, kReadsFirst | kReadsOutput}}};
}

const Operator norms_table[] = {
    {"BatchNormalization", batch_norm, 4},
    {"InstanceNormalization", norm, 5},
    {"GroupNormalization", norm, 5},
    {"LayerNormalization", layer_norm, 5},
    {"SimplifiedLayerNormalization", layer_norm, 4},
    {"RMSNormalization", layer_norm, 4},
    {"MeanVarianceNormalization", norm, 5},
    {"LpNormalization", norm, 3},
    {.name = "SkipLayerNormalization", .apply = skip_layer_norm, .domain = "com.microsoft"},
    {"Softmax", softmax, 5},
    {"LogSoftmax", softmax, 5},
    {"LRN", local_response},
};

}  // namespace

Operators norms() { return norms_table; }

}  // namespace stagecraft::onnx
