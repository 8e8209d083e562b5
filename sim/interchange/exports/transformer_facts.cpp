// Recovers the shape of a transformer (heads, widths, experts, norms) from the operations of its layers, and from the
// fields of its model what these do not show, for the exporters to Megatron-LM and torchtitan.

#include "sim/interchange/exports/transformer_facts.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

/// Whether the operation makes queries, keys or values.
bool before_attention(const std::vector<Operation>& ops, std::size_t i) {
  return std::any_of(ops.begin() + static_cast<std::ptrdiff_t>(i), ops.end(),
                     [](const Operation& op) { return op.kind == OperationKind::Attention; });
}

void add_attention(const Operation& op, TransformerFacts& f) {
  const HeadShape heads = head_shape(op);
  ++f.layers;
  f.heads = heads.heads, f.key_value_heads = heads.key_value_heads, f.head_width = heads.value;
  f.latent = f.latent || op.inputs.size() > 1;
  f.fused_attention = f.fused_attention && op.fused;
  if (op.window > 0) f.window = op.window;
  if (op.window == 0 && f.full_every == 0) f.full_every = f.layers;
  f.sinks = f.sinks || op.sinks;
}

/// Adds what operation `i` of a layer says.
void add_operation(const std::vector<Operation>& ops, std::size_t i, bool has_experts, TransformerFacts& f) {
  const Operation& op = ops[i];
  switch (op.kind) {
    case OperationKind::Embedding:
      f.vocabulary = op.inner, f.hidden = op.columns, f.sequence = op.rows;
      f.positions = f.positions || op.positions;
      break;
    case OperationKind::Attention:
      add_attention(op, f);
      break;
    case OperationKind::GatedSilu:
      f.gated = true;
      break;
    case OperationKind::Linear:
      (before_attention(ops, i) ? f.query_bias : f.bias) |= op.bias && op.division != Division::Vocabulary;
      if (op.division == Division::Row && i > 0 && ops[i - 1].kind != OperationKind::Attention)
        (has_experts ? f.shared_width : f.feed_forward) = op.inner;
      break;
    case OperationKind::HeadNorm:
      f.query_norm = true;
      break;
    case OperationKind::RmsNorm:
      f.rms = true;
      break;
    case OperationKind::Rotary:
      f.rotary = true;
      break;
    case OperationKind::GroupedLinear:
      f.experts = op.experts, f.active = op.active;
      if (op.within_expert == Division::Row) f.expert_width = op.inner;
      break;
    case OperationKind::Dispatch:
      f.expert_nodes = op.nodes, f.expert_groups = op.groups;
      break;
    default:
      break;
  }
}

bool is_head(const Operation& op) { return op.kind == OperationKind::Linear && op.division == Division::Vocabulary; }

/// The fields of a transformer that its operations do not have by themselves.
void add_fields(const config::Value& model, TransformerFacts& f) {
  const auto count = [](const config::Value& map, const char* key) {
    const config::Value* value = map.find(key);
    return value ? config::as_int(*value) : 0;
  };
  f.next_tokens = count(model, "next_tokens");
  const config::Value* norms = model.find("output_norms");
  f.output_norms = norms && norms->text == "true";
  if (f.feed_forward == 0) f.feed_forward = count(model, "feed_forward");  // Every layer has experts.
  const config::Value* experts = model.find("experts");
  const config::Value* capacity = experts && experts->is_map() ? experts->find("capacity") : nullptr;
  if (capacity) f.capacity = config::as_real(*capacity);
  const config::Value* latent = model.find("latent");
  if (!latent || !latent->is_map()) return;
  f.query_rank = count(*latent, "query"), f.key_value_rank = count(*latent, "key_value");
  f.rope_width = count(*latent, "rope"), f.nope_width = count(*latent, "nope");
  f.value_width = count(*latent, "value");
}

}  // namespace

TransformerFacts facts_of(const PlannedExperiment& p) {
  TransformerFacts f;
  int with_experts = 0;
  std::string embedding;
  for (const Layer& layer : p.model().layers) {
    const auto is_grouped = [](const Operation& op) { return op.kind == OperationKind::GroupedLinear; };
    const bool has_experts = std::any_of(layer.operations.begin(), layer.operations.end(), is_grouped);
    const LayerPart part = part_of(layer);
    if (part == LayerPart::NextToken) continue;
    if (part == LayerPart::Layer) with_experts += has_experts, f.dense_layers += !has_experts;
    f.dense_first = f.dense_first && (part != LayerPart::Layer || has_experts || with_experts == 0);
    for (std::size_t i = 0; i < layer.operations.size(); ++i) add_operation(layer.operations, i, has_experts, f);
    if (part == LayerPart::Embedding) embedding = layer.tie;
    // Next-token modules share the head, and need not share it with the embedding.
    if (std::any_of(layer.operations.begin(), layer.operations.end(), is_head))
      f.tied = !layer.tie.empty() && layer.tie == embedding;
  }
  if (f.window == 0) f.full_every = 0;
  const config::Value* model = p.experiment.source ? p.experiment.source->find("model") : nullptr;
  if (model && model->is_map()) add_fields(*model, f);
  return f;
}

LayerPart part_of(const Layer& layer) {
  if (layer.name.starts_with("mtp")) return LayerPart::NextToken;
  if (layer.type == "transformer_layer" || layer.type == "experts_layer") return LayerPart::Layer;
  if (layer.type == "norm" || layer.type == "layernorm") return LayerPart::Norm;
  for (const Operation& op : layer.operations) {
    if (op.is_loss()) return LayerPart::Loss;
    if (is_head(op)) return LayerPart::Head;
  }
  return LayerPart::Embedding;
}

}  // namespace stagecraft
