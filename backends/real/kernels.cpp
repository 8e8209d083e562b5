// What all Kernels share: the layout of weights, what an operation keeps for its backward, and defaults of optional
// kernels.

#include "backends/real/kernels.hpp"

#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

std::int64_t aligned(std::int64_t numbers, std::size_t width) {
  const auto step = static_cast<std::int64_t>(64 / wide_width(width));
  return (numbers + step - 1) / step * step;
}

}  // namespace

Keeps keeps(const Operation& op) {
  const std::int64_t rows = op.rows, numbers = rows * op.columns;
  switch (op.kind) {
    case OperationKind::Linear:
    case OperationKind::Router:
    case OperationKind::GroupedLinear:
    case OperationKind::Combine:
    case OperationKind::Gelu:
    case OperationKind::Silu:
    case OperationKind::GatedSilu:
    case OperationKind::Embedding:
      return {.inputs = true};
    case OperationKind::Relu:
    case OperationKind::Tanh:
      return {.output = true};
    case OperationKind::LayerNorm:
    case OperationKind::RmsNorm:
      return {.numbers = numbers + rows};  // The normalised rows, and one over each standard deviation.
    case OperationKind::HeadNorm: {
      const HeadShape shape = head_shape(op);  // Each normalized head of Q and K, and one number for it.
      return {.numbers = rows * (shape.heads + shape.key_value_heads) * (shape.query + 1)};
    }
    case OperationKind::Attention:
      // The probabilities. Backends that compute them again need the output.
      return {.inputs = true, .output = true, .numbers = op.heads * rows * rows};
    case OperationKind::CrossEntropy:
    case OperationKind::MeanSquare:
    case OperationKind::SumSquare:
      return {.numbers = numbers};  // The gradient.
    case OperationKind::Tensor:
      return {.inputs = reads_operands(op.tensor->function), .output = reads_output(op.tensor->function)};
    default:
      return {};
  }
}

bool saves_wide(const Operation& op) { return op.kind != OperationKind::Attention; }

bool has_kernel(const Operation& op) {
  switch (op.kind) {
    case OperationKind::Attention: {
      const HeadShape shape = head_shape(op);
      return shape.query == shape.value && op.inputs.size() <= 1 && op.window == 0 && !op.sinks;
    }
    case OperationKind::HeadNorm:
    case OperationKind::Slice:
    case OperationKind::Router:
    case OperationKind::Dispatch:
    case OperationKind::GroupedLinear:
    case OperationKind::Combine:
    case OperationKind::Prepend:
    case OperationKind::FirstRow:
    case OperationKind::Tensor:
      return false;
    default:
      return true;
  }
}

Blocks blocks(const Operation& op, std::size_t width) {
  std::int64_t first = 0, second = 0;
  switch (op.kind) {
    case OperationKind::Linear:
    case OperationKind::Router:
      first = static_cast<std::int64_t>(op.columns) * op.inner;
      second = op.bias ? op.columns : 0;
      break;
    case OperationKind::GroupedLinear:
      first = static_cast<std::int64_t>(op.experts) * op.columns * op.inner;
      second = op.bias ? static_cast<std::int64_t>(op.experts) * op.columns : 0;
      break;
    case OperationKind::HeadNorm:
      first = second = head_shape(op).query;
      break;
    case OperationKind::LayerNorm:
      first = second = op.columns;
      break;
    case OperationKind::RmsNorm:
      first = op.columns;
      break;
    case OperationKind::Prepend:
      first = op.columns;
      second = static_cast<std::int64_t>(op.rows) * op.columns;
      break;
    case OperationKind::Embedding:
      first = static_cast<std::int64_t>(op.inner) * op.columns;
      second = op.positions ? static_cast<std::int64_t>(op.rows) * op.columns : 0;
      break;
    case OperationKind::Tensor:
      first = static_cast<std::int64_t>(op.parameters());
      break;
    default:
      break;
  }
  return {first, second, aligned(first, width) + aligned(second, width)};
}

std::int64_t second_block(const Operation& op, std::size_t width) { return aligned(blocks(op, width).first, width); }

void Kernels::copy_rows(const void* from, std::int64_t from_stride, void* to, std::int64_t to_stride, std::int64_t rows,
                        std::int64_t columns) {
  const auto bytes = static_cast<std::int64_t>(width());
  for (std::int64_t row = 0; row < rows; ++row)
    copy(static_cast<const char*>(from) + row * from_stride * bytes, static_cast<char*>(to) + row * to_stride * bytes,
         columns * bytes);
}

void Kernels::forward_with_gelu(const Call& product, const Call& gelu) {
  forward(product);
  forward(gelu);
}

void Kernels::input_gradient_with_gelu(const Call& product, Tensor d_output, const Gradient& between, const Call& gelu,
                                       const Gradient& d_input) {
  input_gradient(product, d_output, {&between, 1});
  input_gradient(gelu, between.tensor, {&d_input, 1});
}

void Kernels::narrow(Tensor, Tensor) { throw InternalError("this backend has no kernel 'narrow'"); }

void Kernels::choose_experts(const Operation&, Tensor, std::span<std::int32_t>) {
  throw InternalError("this backend has no kernel that chooses experts");
}

void Kernels::maximum(Tensor, Tensor) { throw InternalError("this backend has no kernel 'maximum'"); }

void Kernels::attention_part(const Call&, const KeyPart&) {
  throw InternalError("this backend has no kernel for attention over parts of the keys");
}

void Kernels::attention_part_gradient(const Call& call, const KeyPart& part, Tensor, Tensor, Tensor) {
  attention_part(call, part);
}

void Kernels::divided_loss(DividedLossStep, const Call&, const DividedLoss&) {
  throw InternalError("this backend has no kernel for a loss over divided classes");
}

void Kernels::divided_scores(ScoreStep, const Call&, const ScoreRecords&) {
  throw InternalError("this backend has no kernel for scores that the ranks of a pipeline divide");
}

}  // namespace stagecraft::real
