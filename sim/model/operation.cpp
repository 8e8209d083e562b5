#include "sim/model/operation.hpp"

#include <fmt/format.h>

namespace stagecraft {

double Operation::parameters() const {
  switch (kind) {
    case OperationKind::Linear:
      return static_cast<double>(inner) * columns + (bias ? columns : 0);
    case OperationKind::LayerNorm:
      return 2.0 * columns;
    case OperationKind::Embedding:
      return (static_cast<double>(inner) + rows) * columns;
    default:
      return 0;
  }
}

std::string_view to_text(OperationKind kind) {
  constexpr std::string_view names[] = {"input",         "linear",      "layer_norm", "relu", "tanh",
                                        "gelu",          "attention",   "embedding",  "add",  "concat",
                                        "cross_entropy", "mean_square", "sum_square"};
  return names[static_cast<int>(kind)];
}

std::string to_text(const Operation& op) {
  std::string text = fmt::format("{} {}x{}", to_text(op.kind), op.rows, op.columns);
  if (op.kind == OperationKind::Linear) text += fmt::format(" from {}{}", op.inner, op.bias ? "" : " without bias");
  if (op.kind == OperationKind::Embedding) text += fmt::format(" of {} words", op.inner);
  if (op.kind == OperationKind::Attention) text += fmt::format(" {} heads{}", op.heads, op.causal ? " causal" : "");
  return text;
}

}  // namespace stagecraft
