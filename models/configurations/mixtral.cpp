#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_mixtral(ConfigurationReader& r) {
  r.read_llama_shape();
  r.read_grouped_heads();
  r.set("bias", "false");
  r.copy_optional("sliding_window", "window");
  r.copy_required("num_local_experts", "experts.count");
  r.copy_required("num_experts_per_tok", "experts.active");
  r.copy_required("intermediate_size", "experts.width");
}

}  // namespace

extern const ConfigurationFamily mixtral{
    .name = "mixtral",
    .summary = "Mixtral: Llama with experts",
    .source = "Jiang et al., Mixtral of Experts, 2024; MixtralConfig of transformers",
    .read = read_mixtral,
};

}  // namespace stagecraft::model_configurations
