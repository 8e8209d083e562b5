#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_qwen2(ConfigurationReader& r) {
  r.read_llama_shape();
  r.read_grouped_heads();
  r.set("bias", "false");
  r.set("query_key_value_bias", "true");
  r.read_optional_window();
}

}  // namespace

extern const ConfigurationFamily qwen2{
    .name = "qwen2",
    .summary = "Qwen2 and Qwen2.5: Llama with a bias at queries, keys and values",
    .source = "Qwen Team, Qwen2 Technical Report, 2024; Qwen2Config of transformers",
    .read = read_qwen2,
};

}  // namespace stagecraft::model_configurations
