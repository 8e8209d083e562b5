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
  r.take("num_nextn_predict_layers", "next_tokens");
  return r.finish();
}

}  // namespace

extern const ConfigurationFamily deepseek_v3{
    .name = "deepseek_v3",
    .summary = "DeepSeek-V3 and R1: DeepSeek-V2 with prediction of later tokens",
    .source = "DeepSeek-AI, DeepSeek-V3, 2024; DeepseekV3Config of transformers",
    .read = read,
};

}  // namespace stagecraft::model_configurations
