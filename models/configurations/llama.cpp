#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_llama(ConfigurationReader& r) {
  r.read_llama_shape();
  r.read_grouped_heads();
  r.set("bias", r.flag("mlp_bias", false) ? "true" : "false");
  r.set("attention_bias", r.flag("attention_bias", false) ? "true" : "false");
}

}  // namespace

extern const ConfigurationFamily llama{
    .name = "llama",
    .summary = "Llama: RMS norm, rotation, grouped queries, SwiGLU",
    .source = "Touvron et al., Llama 2, 2023; LlamaConfig of transformers",
    .read = read_llama,
};

}  // namespace stagecraft::model_configurations
