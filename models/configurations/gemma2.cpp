#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_gemma2(ConfigurationReader& r) {
  r.copy_required("num_hidden_layers", "layers");
  r.copy_required("hidden_size", "hidden");
  r.copy_or("num_attention_heads", "heads", "8");
  r.copy_or("num_key_value_heads", "key_value_heads", "4");
  r.copy_or("head_dim", "head_width", "256");
  r.copy_required("intermediate_size", "feed_forward");
  r.copy_or("vocab_size", "vocabulary", "256000");
  r.expect_word("hidden_activation", {"gelu_pytorch_tanh", "gelu"});
  r.expect_word("hidden_act", {"gelu_pytorch_tanh", "gelu"});
  r.read_sequence_of("max_position_embeddings", 8192);
  r.read_gated_decoder(true);
  r.set("bias", "false");
  r.set("attention_bias", r.flag("attention_bias", false) ? "true" : "false");
  r.set("output_norms", "true");
  r.read_window_pattern("4096", 2);
}

}  // namespace

extern const ConfigurationFamily gemma2{
    .name = "gemma2",
    .summary = "Gemma 2: norms before and after attention and dense layers, and a window in every second layer",
    .source = "Gemma Team, Gemma 2, 2024; Gemma2Config of transformers",
    .read = read_gemma2,
};

}  // namespace stagecraft::model_configurations
