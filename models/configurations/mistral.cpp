#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_mistral(ConfigurationReader& r) {
  r.read_llama_shape();
  r.read_grouped_heads();
  r.set("bias", "false");
  r.copy_optional("sliding_window", "window");
  if (!r.has("sliding_window")) r.set("window", "4096");  // The default of MistralConfig.
}

}  // namespace

extern const ConfigurationFamily mistral{
    .name = "mistral",
    .summary = "Mistral: Llama with a sliding window",
    .source = "Jiang et al., Mistral 7B, 2023; MistralConfig of transformers",
    .read = read_mistral,
};

}  // namespace stagecraft::model_configurations
