#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_gpt_oss(ConfigurationReader& r) {
  r.read_llama_shape();
  r.read_grouped_heads();
  r.set("bias", "true");
  r.set("attention_bias", r.flag("attention_bias", true) ? "true" : "false");
  r.set("sinks", "true");
  r.copy_required("num_local_experts", "experts.count");
  r.copy_required(r.find("experts_per_token") ? "experts_per_token" : "num_experts_per_tok", "experts.active");
  r.copy_required("intermediate_size", "experts.width");
  if (r.find("layer_types")) {
    r.read_layer_types();
  } else {  // Every second layer looks at all tokens.
    r.copy_required("sliding_window", "window");
    r.set("full_every", "2");
  }
}

}  // namespace

extern const ConfigurationFamily gpt_oss{
    .name = "gpt_oss",
    .summary = "GPT-OSS: experts, and a sliding window in every second layer",
    .source = "OpenAI, gpt-oss model card, 2025; GptOssConfig of transformers",
    .read = read_gpt_oss,
};

}  // namespace stagecraft::model_configurations
