#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_gemma3_text(ConfigurationReader& r) {
  r.copy_required("num_hidden_layers", "layers");
  r.copy_required("hidden_size", "hidden");
  r.copy_or("num_attention_heads", "heads", "8");
  r.copy_or("num_key_value_heads", "key_value_heads", "4");
  r.copy_or("head_dim", "head_width", "256");
  r.copy_required("intermediate_size", "feed_forward");
  r.copy_or("vocab_size", "vocabulary", "262208");
  r.expect_word("hidden_activation", {"gelu_pytorch_tanh", "gelu"});
  r.expect_word("hidden_act", {"gelu_pytorch_tanh", "gelu"});
  r.read_sequence_of("max_position_embeddings", 131072);
  r.read_gated_decoder(true);
  r.set("bias", "false");
  r.set("attention_bias", r.flag("attention_bias", false) ? "true" : "false");
  r.set("query_key_norm", "true");
  r.set("output_norms", "true");
  const char* const pattern = r.find("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
  r.read_window_pattern("4096", r.number(pattern, 6));
}

}  // namespace

extern const ConfigurationFamily gemma3_text{
    .name = "gemma3_text",
    .summary = "Gemma 3: as Gemma 2 with normalized heads, and a window in five of six layers",
    .source = "Gemma Team, Gemma 3 Technical Report, 2025; Gemma3TextConfig of transformers",
    .read = read_gemma3_text,
};

}  // namespace stagecraft::model_configurations
