#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_deepseek_v2(ConfigurationReader& r) { r.read_deepseek_shape(); }

}  // namespace

extern const ConfigurationFamily deepseek_v2{
    .name = "deepseek_v2",
    .summary = "DeepSeek-V2: latent attention, shared and routed experts",
    .source = "DeepSeek-AI, DeepSeek-V2, 2024; DeepseekV2Config of transformers",
    .read = read_deepseek_v2,
};

}  // namespace stagecraft::model_configurations
