#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

config::Value read(const config::Value& configuration, config::Problems& problems) {
  ConfigurationReader r(configuration, problems);
  r.read_llama_shape();
  r.set("bias", "false");
  r.set("attention_bias", r.flag("attention_bias", false) ? "true" : "false");
  r.read_latent_attention();
  r.read_deepseek_experts();
  return r.finish();
}

}  // namespace

extern const ConfigurationFamily deepseek_v2{
    .name = "deepseek_v2",
    .summary = "DeepSeek-V2: latent attention, shared and routed experts",
    .source = "DeepSeek-AI, DeepSeek-V2, 2024; DeepseekV2Config of transformers",
    .read = read,
};

}  // namespace stagecraft::model_configurations
