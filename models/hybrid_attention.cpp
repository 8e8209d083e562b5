// Refuses configurations with layers of linear attention, with the nearest model that the builder transformer makes.

#include "models/hybrid_attention.hpp"

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// The length of the chunks in which kernels of gated delta rules compute.
constexpr int kChunk = 64;

}  // namespace

// A state of fixed size is in place of keys and values, which no operation here is.
void refuse_linear_attention(ConfigurationReader& r) {
  const int layers = r.number("num_hidden_layers", 0), every = r.number("full_attention_interval", 4);
  const auto text = [&](const char* key) {
    const config::Value* value = r.find(key);
    return value && value->is_scalar() ? value->text : std::string("?");
  };
  std::string experts;
  if (r.find("num_experts"))
    experts = fmt::format(", experts: {{count: {}, active: {}, width: {}, shared: 1}}", text("num_experts"),
                          text("num_experts_per_tok"), text("moe_intermediate_size"));
  if (layers == 0)
    return r.refuse("num_hidden_layers", "most layers have linear attention (gated delta rule), which is not modeled",
                    "give the whole configuration, for the nearest model that can be built");
  const int linear = every > 0 ? layers - layers / every : layers;
  r.refuse(
      "linear_num_value_heads",
      fmt::format("{} of {} have linear attention (gated delta rule), which is not modeled", linear,
                  pluralize(layers, "layer")),
      fmt::format("the nearest approximation is a window of {} tokens, a chunk of its kernels, in these layers: "
                  "model: {{builder: transformer, layers: {}, hidden: {}, heads: {}, key_value_heads: {}, "
                  "head_width: {}, feed_forward: {}, vocabulary: {}, sequence: 4096, positions: rotary, norm: rms, "
                  "gated: true, bias: false, query_key_norm: true, tied: {}, window: {}, full_every: {}{}}}",
                  kChunk, layers, text("hidden_size"), text("num_attention_heads"), text("num_key_value_heads"),
                  text("head_dim"),
                  r.find("intermediate_size") ? text("intermediate_size") : text("moe_intermediate_size"),
                  text("vocab_size"), r.flag("tie_word_embeddings", false), kChunk, every, experts));
}

}  // namespace stagecraft
