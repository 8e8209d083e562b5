#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_phi3(ConfigurationReader& r) {
  r.read_llama_shape();
  r.read_grouped_heads();
  r.set("bias", "false");
  r.set("attention_bias", r.flag("attention_bias", false) ? "true" : "false");
  r.copy_optional("sliding_window", "window");
}

}  // namespace

extern const ConfigurationFamily phi3{
    .name = "phi3",
    .summary = "Phi-3 and Phi-4: Llama with a sliding window",
    .source = "Abdin et al., Phi-3 Technical Report, 2024; Phi3Config of transformers",
    .read = read_phi3,
};

}  // namespace stagecraft::model_configurations
