// Writes the operations of a decoder from its shape: layers, embedding, last norm, logits, and modules for later
// tokens; the builder `transformer` calls it.

#include "models/decoder.hpp"

#include <cmath>

namespace stagecraft {
namespace {

using enum OperationKind;

/// Writes the operations of one layer one after the other. Each function takes the number of its input and returns the
/// number of what it wrote; -1 is the first input of the layer, -2 its second.
class LayerWriter {
 public:
  explicit LayerWriter(const DecoderShape& n) : n_(n) {}

  int norm(int from, int columns) {
    return add({.kind = n_.rms_norm ? RmsNorm : LayerNorm, .inputs = {from}, .rows = n_.sequence, .columns = columns});
  }

  int product(int from, int inner, int columns, Division division, bool bias) {
    Operation op = linear(n_.sequence, inner, columns, {from});
    op.bias = bias, op.division = division;
    return add(op);
  }

  int sum(std::vector<int> inputs) {
    return add({.kind = Add, .inputs = std::move(inputs), .rows = n_.sequence, .columns = n_.hidden});
  }

  int attention(int from, int layer) {
    return n_.latent_attention ? write_latent_attention(from, layer) : write_grouped_attention(from, layer);
  }

  int dense(int from, int width) {
    const int up = product(from, n_.hidden, (n_.gated ? 2 : 1) * width, Division::Column, n_.bias);
    return product(activation(up, n_.sequence, width, Division::Column), width, n_.hidden, Division::Row, n_.bias);
  }

  std::vector<int> experts(int from) {
    const ExpertsShape& e = n_.experts;
    const double mean = static_cast<double>(n_.sequence) * e.active * (e.capacity > 0 ? e.capacity : 1);
    const int sent = static_cast<int>(std::ceil(mean));
    Operation router{.kind = Router, .inputs = {from}, .rows = n_.sequence, .columns = e.count, .inner = n_.hidden};
    router.bias = n_.bias, router.experts = e.count, router.active = e.active;
    const int scores = add(router);
    const int copies = add(expert_rows(Dispatch, {from, scores}, sent, n_.hidden));
    const int up = grouped_linear(copies, sent, n_.hidden, (n_.gated ? 2 : 1) * e.width, Division::Column);
    const int activated = activation(up, sent, e.width, Division::Experts);
    const int down = grouped_linear(activated, sent, e.width, n_.hidden, Division::Row);
    std::vector<int> parts{add(expert_rows(Combine, {down, scores}, n_.sequence, n_.hidden))};
    if (e.shared > 0) parts.push_back(dense(from, e.shared * e.width));
    return parts;
  }

  int add(Operation op) {
    operations_.push_back(std::move(op));
    return static_cast<int>(operations_.size()) - 1;
  }

  Operations take() { return std::move(operations_); }

 private:
  int activation(int from, int rows, int width, Division division) {
    Operation op{.kind = n_.gated ? GatedSilu : Gelu, .inputs = {from}, .rows = rows, .columns = width};
    op.inner = n_.gated ? 2 * width : 0, op.division = division;
    return add(op);
  }

  Operation expert_rows(OperationKind kind, std::vector<int> inputs, int rows, int columns) const {
    Operation op{.kind = kind, .inputs = std::move(inputs), .rows = rows, .columns = columns};
    op.experts = n_.experts.count, op.active = n_.experts.active;
    op.nodes = n_.experts.nodes, op.groups = n_.experts.groups, op.imbalance = n_.experts.imbalance;
    op.division = Division::Experts;
    return op;
  }

  int grouped_linear(int from, int rows, int inner, int columns, Division within_expert) {
    Operation op = expert_rows(GroupedLinear, {from}, rows, columns);
    op.inner = inner, op.bias = n_.bias, op.nodes = op.groups = 0, op.within_expert = within_expert;
    return add(op);
  }

  /// Rotates the first `heads` heads of the input; with latent attention, only a part of each head.
  int rotary(int from, int columns, int heads, int width, int rotated, Division division) {
    Operation op{.kind = Rotary, .inputs = {from}, .rows = n_.sequence, .columns = columns};
    op.heads = heads, op.head_width = width, op.rotary = rotated, op.division = division;
    return add(op);
  }

  Operation core(std::vector<int> inputs, int columns, int layer) const {
    Operation op{.kind = Attention, .inputs = std::move(inputs), .rows = n_.sequence, .columns = columns};
    op.heads = n_.heads, op.causal = true, op.window = n_.window_of(layer);
    op.fused = n_.flash_attention, op.sinks = n_.sinks, op.division = Division::Heads;
    return op;
  }

  int write_grouped_attention(int from, int layer) {
    const int width = n_.head_width, projected = (n_.heads + 2 * n_.key_value_heads) * width;
    int last = product(from, n_.hidden, projected, Division::Column, n_.query_key_value_bias);
    if (n_.query_key_norm) {
      Operation op{.kind = HeadNorm, .inputs = {last}, .rows = n_.sequence, .columns = projected, .heads = n_.heads};
      op.key_value_heads = n_.key_value_heads, op.head_width = width, op.division = Division::Heads;
      last = add(op);
    }
    if (n_.positions == PositionKind::Rotary)
      last = rotary(last, projected, n_.heads + n_.key_value_heads, width, width, Division::Heads);
    Operation op = core({last}, n_.heads * width, layer);
    op.key_value_heads = n_.key_value_heads, op.head_width = width;
    return product(add(op), n_.heads * width, n_.hidden, Division::Row, n_.attention_bias);
  }

  int slice(int from, int first, int columns) {
    return add({.kind = Slice, .inputs = {from}, .rows = n_.sequence, .columns = columns, .inner = first});
  }

  // The projections to short vectors are replicated, as in Megatron-LM.
  int write_latent_attention(int from, int layer) {
    const LatentShape& m = n_.latent;
    const int head = m.nope + m.rope;
    int query = from, query_inner = n_.hidden;
    if (m.query > 0) {
      query = norm(product(from, n_.hidden, m.query, Division::Replicated, n_.query_key_value_bias), m.query);
      query_inner = m.query;
    }
    query = product(query, query_inner, n_.heads * head, Division::Column, false);
    const int down = product(from, n_.hidden, m.key_value + m.rope, Division::Replicated, n_.query_key_value_bias);
    const int short_vector = norm(slice(down, 0, m.key_value), m.key_value);
    const int keys = product(short_vector, m.key_value, n_.heads * (m.nope + m.value), Division::Column, false);
    int shared = slice(down, m.key_value, m.rope);
    if (n_.positions == PositionKind::Rotary) {
      shared = rotary(shared, m.rope, 1, m.rope, m.rope, Division::Replicated);
      query = rotary(query, n_.heads * head, n_.heads, head, m.rope, Division::Heads);
    }
    Operation op = core({query, keys, shared}, n_.heads * m.value, layer);
    op.head_width = head;
    return product(add(op), n_.heads * m.value, n_.hidden, Division::Row, n_.attention_bias);
  }

  const DecoderShape& n_;
  Operations operations_;
};

}  // namespace

bool DecoderShape::is_plain_gpt() const {
  const bool heads_are_plain = key_value_heads == heads && head_width * heads == hidden && !latent_attention;
  const bool has_biases = bias && attention_bias && query_key_value_bias;
  return heads_are_plain && has_biases && positions == PositionKind::Learned && !rms_norm && !gated &&
         !query_key_norm && !sinks && !output_norms && window == 0 && !has_experts && next_tokens == 0;
}

bool DecoderShape::layer_has_experts(int layer) const {
  return has_experts && layer >= experts.first_dense && (layer + 1) % experts.every == 0;
}

int DecoderShape::window_of(int layer) const { return full_every > 0 && (layer + 1) % full_every == 0 ? 0 : window; }

Operations decoder_operations(const DecoderShape& n, int layer) {
  LayerWriter writer(n);
  const auto added = [&](int output) { return n.output_norms ? writer.norm(output, n.hidden) : output; };
  const int after_attention = writer.sum({-1, added(writer.attention(writer.norm(-1, n.hidden), layer))});
  const int norm = writer.norm(after_attention, n.hidden);
  std::vector<int> parts{after_attention};
  if (n.layer_has_experts(layer)) {
    for (const int part : writer.experts(norm)) parts.push_back(added(part));
  } else {
    parts.push_back(added(writer.dense(norm, n.feed_forward)));
  }
  writer.sum(parts);
  return writer.take();
}

Operations final_norm_operations(const DecoderShape& n) {
  LayerWriter writer(n);
  writer.norm(-1, n.hidden);
  return writer.take();
}

Operation embedding_operation(const DecoderShape& n) {
  Operation op{.kind = Embedding, .inputs = {-1}, .rows = n.sequence, .columns = n.hidden, .inner = n.vocabulary};
  op.positions = n.positions == PositionKind::Learned, op.division = Division::Vocabulary;
  return op;
}

Operation logits_operation(const DecoderShape& n) {
  Operation op = linear(n.sequence, n.hidden, n.vocabulary);
  op.bias = false, op.division = Division::Vocabulary;
  return op;
}

Operations next_token_operations(const DecoderShape& n) {
  LayerWriter writer(n);
  const int stream = writer.norm(-1, n.hidden), next = writer.norm(-2, n.hidden);
  const int both = writer.add({.kind = Concat, .inputs = {stream, next}, .rows = n.sequence, .columns = 2 * n.hidden});
  writer.product(both, 2 * n.hidden, n.hidden, Division::Replicated, false);
  return writer.take();
}

}  // namespace stagecraft
