// Makes operations that several model builders share: products, attention, norms, losses, a whole Transformer layer.

#include "models/operations.hpp"

namespace stagecraft {

using enum OperationKind;

Operation linear(int rows, int inputs, int outputs, std::vector<int> from) {
  return {.kind = Linear, .inputs = std::move(from), .rows = rows, .columns = outputs, .inner = inputs};
}

Operation divided_linear(int rows, int inputs, int outputs, int from, Division division) {
  Operation op = linear(rows, inputs, outputs, {from});
  op.division = division;
  return op;
}

Operation source_of(int rows, int columns) { return {.kind = Input, .rows = rows, .columns = columns}; }

Operation loss_of(OperationKind kind, int rows, int columns) {
  return {.kind = kind, .inputs = {-1}, .rows = rows, .columns = columns};
}

Operations dense_operations(int rows, int inputs, int outputs, const std::string& activation) {
  Operations operations{linear(rows, inputs, outputs)};
  if (activation != "none") {
    const OperationKind kind = activation == "relu" ? Relu : activation == "tanh" ? Tanh : Gelu;
    operations.push_back({.kind = kind, .inputs = {0}, .rows = rows, .columns = outputs});
  }
  return operations;
}

Operations norm_operations(int rows, int width) {
  return {{.kind = LayerNorm, .inputs = {-1}, .rows = rows, .columns = width}};
}

namespace {

Operation attention(int rows, int width, int heads, int from, bool causal, bool fused) {
  Operation op{.kind = Attention, .inputs = {from}, .rows = rows, .columns = width, .heads = heads, .causal = causal};
  op.fused = fused, op.division = Division::Heads;
  return op;
}

}  // namespace

Operations attention_operations(int rows, int width, int heads, bool causal) {
  return {divided_linear(rows, width, 3 * width, -1, Division::Column), attention(rows, width, heads, 0, causal, false),
          divided_linear(rows, width, width, 1, Division::Row)};
}

Operations transformer_operations(int rows, int width, int feed_forward, int heads, bool causal, bool fused) {
  Operation gelu{.kind = Gelu, .inputs = {6}, .rows = rows, .columns = feed_forward};
  gelu.division = Division::Column;
  return {{.kind = LayerNorm, .inputs = {-1}, .rows = rows, .columns = width},
          divided_linear(rows, width, 3 * width, 0, Division::Column),
          attention(rows, width, heads, 1, causal, fused),
          divided_linear(rows, width, width, 2, Division::Row),
          {.kind = Add, .inputs = {-1, 3}, .rows = rows, .columns = width},
          {.kind = LayerNorm, .inputs = {4}, .rows = rows, .columns = width},
          divided_linear(rows, width, feed_forward, 5, Division::Column),
          gelu,
          divided_linear(rows, feed_forward, width, 7, Division::Row),
          {.kind = Add, .inputs = {4, 8}, .rows = rows, .columns = width}};
}

}  // namespace stagecraft
