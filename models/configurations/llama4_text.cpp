#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

constexpr int kNopeEvery = 4;  ///< Every fourth layer attends to all tokens, unless the configuration says otherwise.

/// Layers whose `no_rope_layers` is 0 attend to all tokens. Others attend inside of a chunk, on the average to half of
/// it, which a window of half of a chunk stands for.
void read_chunks(ConfigurationReader& r) {
  const int chunk = r.number("attention_chunk_size", 8192);
  int every = r.number("no_rope_layer_interval", kNopeEvery);
  if (const config::Value* list = r.find("no_rope_layers"); list && list->is_list() && !list->items.empty()) {
    every = 0;
    for (std::size_t i = 0; i < list->items.size() && every == 0; ++i)
      if (list->items[i].text == "0") every = static_cast<int>(i) + 1;
    for (std::size_t i = 0; every > 0 && i < list->items.size(); ++i)
      if ((list->items[i].text == "0") != ((i + 1) % every == 0))
        return r.refuse("no_rope_layers", "layers without rotation do not come at equal distances",
                        "only a pattern such as 1, 1, 1, 0 can be read");
  }
  r.find("layer_types");
  if (chunk < 2 || r.sequence() <= chunk) return;
  r.set("window", std::to_string(chunk / 2));
  if (every > 0) r.set("full_every", std::to_string(every));
  r.note("attention inside of chunks of " + std::to_string(chunk) + " tokens is a window of half as many here");
}

/// Experts are in each layer whose number, counted from 1, the step divides; `moe_layers` lists them from 0.
void read_moe_layers(ConfigurationReader& r) {
  const int step = r.number("interleave_moe_layer_step", 1);
  if (const config::Value* list = r.find("moe_layers"); list && list->is_list())
    for (std::size_t i = 0; i < list->items.size(); ++i)
      if (list->items[i].text != std::to_string((static_cast<int>(i) + 1) * step - 1))
        return r.refuse("moe_layers", "layers with experts do not come at the distances of interleave_moe_layer_step",
                        "leave it out, or write the layers step - 1, 2 step - 1, ...");
  if (step > 1) r.copy_optional("interleave_moe_layer_step", "experts.every");
}

void read_llama4_text(ConfigurationReader& r) {
  r.copy_required("num_hidden_layers", "layers");
  r.copy_required("hidden_size", "hidden");
  r.copy_required("num_attention_heads", "heads");
  r.read_grouped_heads();
  r.copy_required("intermediate_size_mlp", "feed_forward");
  r.copy_required("vocab_size", "vocabulary");
  r.expect_word("hidden_act", {"silu"});
  r.read_sequence_of("max_position_embeddings", 0);
  r.read_gated_decoder(false);
  r.set("bias", "false");
  r.set("attention_bias", r.flag("attention_bias", false) ? "true" : "false");
  if (r.flag("use_qk_norm", true)) r.set("query_key_norm", "true");
  r.copy_required("num_local_experts", "experts.count");
  r.copy_or("num_experts_per_tok", "experts.active", "1");
  r.copy_required("intermediate_size", "experts.width");
  r.set("experts.shared", "1");
  read_moe_layers(r);
  read_chunks(r);
}

}  // namespace

extern const ConfigurationFamily llama4_text{
    .name = "llama4_text",
    .summary = "Llama 4: experts with a shared one in all or every second layer, and attention inside of chunks",
    .source = "Meta, Llama 4, 2025; Llama4TextConfig of transformers",
    .read = read_llama4_text,
};

}  // namespace stagecraft::model_configurations
