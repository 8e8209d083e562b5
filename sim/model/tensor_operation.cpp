// Shapes and texts of operations on arrays of any number of dimensions, and what their gradients read.

#include "sim/model/tensor_operation.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace stagecraft {
namespace {

std::string shape_text(const TensorShape& shape) {
  return shape.empty() ? "one number" : fmt::format("{}", fmt::join(shape, "x"));
}

}  // namespace

const TensorOperand* TensorOperation::weights() const {
  const auto it = std::find_if(operands.begin(), operands.end(),
                               [](const TensorOperand& o) { return o.source == OperandSource::Weights; });
  return it == operands.end() ? nullptr : &*it;
}

std::int64_t numbers_of(const TensorShape& shape) {
  std::int64_t numbers = 1;
  for (const std::int64_t size : shape) numbers *= size;
  return numbers;
}

TensorShape broadcast_strides(const TensorShape& from, const TensorShape& to) {
  TensorShape strides(to.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t back = 0; back < from.size(); ++back) {
    const std::int64_t size = from[from.size() - 1 - back];
    if (size != 1) strides[to.size() - 1 - back] = stride;
    stride *= size;
  }
  return strides;
}

bool reads_operands(TensorFunction function) {
  using enum TensorFunction;
  switch (function) {
    case Product:
    case Normalize:
    case Scale:
    case BatchNorm:
    case Convolution:
    case MaxPool:
    case Where:
    case Multiply:
    case Divide:
    case Power:
    case Minimum:
    case Maximum:
    case Logarithm:
    case Sine:
    case Cosine:
    case ErrorFunction:
    case Gelu:
    case GeluTanh:
      return true;
    default:
      return false;
  }
}

bool reads_output(TensorFunction function) {
  using enum TensorFunction;
  switch (function) {
    case Softmax:
    case Reciprocal:
    case SquareRoot:
    case Exponential:
    case Relu:
    case Tanh:
    case Sigmoid:
      return true;
    default:
      return false;
  }
}

bool takes_weights(TensorFunction function) {
  using enum TensorFunction;
  switch (function) {
    case Product:
    case BatchNorm:
    case Convolution:
    case Multiply:
    case Where:
      return true;
    default:
      return !reads_operands(function) && !reads_output(function);
  }
}

std::string to_text(const TensorOperation& op) {
  std::vector<std::string> shapes;
  for (const TensorOperand& operand : op.operands) shapes.push_back(shape_text(operand.shape));
  const bool pools = op.function == TensorFunction::MaxPool || op.function == TensorFunction::AveragePool;
  return fmt::format("{} {}{}{}{}", op.name, shape_text(op.shape), shapes.empty() ? "" : " of ",
                     fmt::join(shapes, " and "), pools ? " by " + shape_text(op.window.kernel) : "");
}

}  // namespace stagecraft
