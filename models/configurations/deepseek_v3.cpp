#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_deepseek_v3(ConfigurationReader& r) {
  r.read_deepseek_shape();
  r.copy_optional("num_nextn_predict_layers", "next_tokens");
}

}  // namespace

extern const ConfigurationFamily deepseek_v3{
    .name = "deepseek_v3",
    .summary = "DeepSeek-V3 and R1: DeepSeek-V2 with prediction of later tokens",
    .source = "DeepSeek-AI, DeepSeek-V3, 2024; DeepseekV3Config of transformers",
    .read = read_deepseek_v3,
};

}  // namespace stagecraft::model_configurations
