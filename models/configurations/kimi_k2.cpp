#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_kimi_k2(ConfigurationReader& r) {
  r.read_deepseek_shape();
  r.copy_optional("num_nextn_predict_layers", "next_tokens");
}

}  // namespace

extern const ConfigurationFamily kimi_k2{
    .name = "kimi_k2",
    .summary = "Kimi K2: the shape of DeepSeek-V3 with more experts and fewer heads",
    .source = "Kimi Team, Kimi K2, 2025; the config.json of its weights",
    .read = read_kimi_k2,
};

}  // namespace stagecraft::model_configurations
