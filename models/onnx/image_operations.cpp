// Turns the nodes of networks for images into tensor operations: which windows and statistics they have.

#include "models/onnx/image_operations.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace stagecraft::onnx {
namespace {

TensorOperation operation_of(TensorFunction function, const OperatorCall& call, const Shape& output) {
  return {.function = function, .name = std::string(call.op.name), .shape = output};
}

TensorOperation unknown_operation(std::string name, const Shape& output) {
  return {.function = TensorFunction::Unknown, .name = std::move(name), .shape = output};
}

/// Whether some window lies in the padding alone, so that it has no largest number, and no mean unless padding counts.
bool has_empty_window(const TensorWindow& window, const Shape& from, const Shape& to) {
  for (std::size_t d = 0; d < window.kernel.size(); ++d)
    for (std::int64_t o = 0; o < to[d + 2]; ++o) {
      bool is_empty = true;
      for (std::int64_t k = 0; k < window.kernel[d] && is_empty; ++k) {
        const std::int64_t at = o * window.strides[d] + k * window.dilations[d] - window.before[d];
        is_empty = at < 0 || at >= from[d + 2];
      }
      if (is_empty) return true;
    }
  return false;
}

TensorOperation convolution_operation(const OperatorCall& call, const Shape& output) {
  TensorOperation op = operation_of(TensorFunction::Convolution, call, output);
  op.window = window_of(call);
  op.groups = call.integer("group", 1);
  return op;
}

TensorOperation pool_operation(const OperatorCall& call, const Shape& output) {
  const bool is_mean = call.op.name == "AveragePool", counts = call.integer("count_include_pad", 0) != 0;
  TensorOperation op = operation_of(is_mean ? TensorFunction::AveragePool : TensorFunction::MaxPool, call, output);
  op.window = window_of(call);
  op.counts_padding = is_mean && counts;
  if (op.counts_padding && call.integer("ceil_mode", 0) != 0)
    return unknown_operation("AveragePool with ceil_mode and count_include_pad (export it with ceil_mode 0)", output);
  if (!op.counts_padding && has_empty_window(op.window, call.input(0).shape, output))
    return unknown_operation(fmt::format("{} with windows of padding alone (export it with smaller pads)", op.name),
                             output);
  return op;
}

/// One window on all numbers of a channel.
TensorOperation global_max_operation(const OperatorCall& call, const Shape& output) {
  const Shape& x = call.input(0).shape;
  const Shape ones(x.size() - 2, 1), none(x.size() - 2, 0);
  TensorOperation op = operation_of(TensorFunction::MaxPool, call, output);
  op.window = {Shape(x.begin() + 2, x.end()), ones, ones, none, none};
  return op;
}

/// The training form computes statistics over the micro-batch, the other one reads them from the file. Before opset
/// 14 only the training form has further outputs.
TensorOperation batch_norm_operation(const OperatorCall& call, const Shape& output) {
  const bool trains = call.opset < 14 ? call.node.outputs.size() > 1 : call.integer("training_mode", 0) != 0;
  if (output.size() < 2 || call.integer("spatial", 1) == 0) return unknown_operation(std::string(call.op.name), output);
  if (!call.input(1).constant) return unknown_operation("BatchNormalization with a computed scale", output);
  TensorOperation op = operation_of(TensorFunction::BatchNorm, call, output);
  op.epsilon = call.real("epsilon", 1e-5);
  for (std::size_t i = 3; i < 5 && !trains; ++i) {
    const Tensor& statistic = call.input(i);
    if (!statistic.constant || !statistic.values)
      return unknown_operation("BatchNormalization without statistics", output);
    op.operands.push_back({OperandSource::Constant, channel_shape(output), *statistic.values});
  }
  return op;
}

}  // namespace

bool is_image_operator(std::string_view type) {
  static constexpr std::string_view kTypes[] = {"Conv",          "MaxPool",           "AveragePool",
                                                "GlobalMaxPool", "GlobalAveragePool", "BatchNormalization"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

TensorOperation image_operation(const OperatorCall& call, const Shape& output) {
  if (call.op.name == "Conv") return convolution_operation(call, output);
  if (call.op.name == "GlobalMaxPool") return global_max_operation(call, output);
  if (call.op.name == "GlobalAveragePool") return operation_of(TensorFunction::Mean, call, output);
  return call.op.name == "BatchNormalization" ? batch_norm_operation(call, output) : pool_operation(call, output);
}

Shape channel_shape(const Shape& shape) {
  Shape channels(shape.size() - 1, 1);
  channels.front() = shape[1];
  return channels;
}

}  // namespace stagecraft::onnx
