#include "models/hybrid_attention.hpp"

namespace stagecraft::model_configurations {

extern const ConfigurationFamily qwen3_5_moe_text{
    .name = "qwen3_5_moe_text",
    .summary = "Qwen3.5 with experts: linear attention in most layers, which is refused with the nearest model",
    .source = "Qwen Team, Qwen3.5, 2026; Qwen3_5MoeTextConfig of transformers",
    .read = refuse_linear_attention,
};

}  // namespace stagecraft::model_configurations
