#include "models/hybrid_attention.hpp"

namespace stagecraft::model_configurations {

extern const ConfigurationFamily qwen3_next{
    .name = "qwen3_next",
    .summary = "Qwen3-Next: linear attention in most layers, which is refused with the nearest model",
    .source = "Qwen Team, Qwen3-Next, 2025; Qwen3NextConfig of transformers",
    .read = refuse_linear_attention,
};

}  // namespace stagecraft::model_configurations
