// Reads config.json of Qwen3 with experts.

#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

/// The layers that `mlp_only_layers` keeps dense must be the first ones.
void read_dense_layers(ConfigurationReader& r) {
  const config::Value* dense = r.find("mlp_only_layers");
  if (!dense || (dense->is_list() && dense->items.empty())) return;
  for (std::size_t i = 0; dense->is_list() && i < dense->items.size(); ++i)
    if (dense->items[i].text != std::to_string(i))
      return r.refuse("mlp_only_layers", "dense layers after the first ones cannot be read", "only [0, 1, ...] can");
  if (!dense->is_list()) return r.refuse("mlp_only_layers", "a list of layers is needed here", {});
  r.set("experts.first_dense", std::to_string(dense->items.size()), dense->where);
}

void read_qwen3_moe(ConfigurationReader& r) {
  r.read_llama_shape();
  r.read_grouped_heads();
  r.set("bias", "false");
  r.set("attention_bias", r.flag("attention_bias", false) ? "true" : "false");
  r.set("query_key_norm", "true");
  if (r.flag("use_sliding_window", false))
    r.refuse("use_sliding_window", "a sliding window of this type of model cannot be read", "write false");
  r.copy_required("num_experts", "experts.count");
  r.copy_required("num_experts_per_tok", "experts.active");
  r.copy_required("moe_intermediate_size", "experts.width");
  r.copy_optional("decoder_sparse_step", "experts.every");
  read_dense_layers(r);
}

}  // namespace

extern const ConfigurationFamily qwen3_moe{
    .name = "qwen3_moe",
    .summary = "Qwen3 with experts",
    .source = "Qwen Team, Qwen3 Technical Report, 2025; Qwen3MoeConfig of transformers",
    .read = read_qwen3_moe,
};

}  // namespace stagecraft::model_configurations
