#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_qwen3(ConfigurationReader& r) {
  r.read_llama_shape();
  r.read_grouped_heads();
  r.set("bias", "false");
  r.set("attention_bias", r.flag("attention_bias", false) ? "true" : "false");
  r.set("query_key_norm", "true");
  r.read_optional_window();
}

}  // namespace

extern const ConfigurationFamily qwen3{
    .name = "qwen3",
    .summary = "Qwen3: Llama with normalized heads of queries and keys",
    .source = "Qwen Team, Qwen3 Technical Report, 2025; Qwen3Config of transformers",
    .read = read_qwen3,
};

}  // namespace stagecraft::model_configurations
