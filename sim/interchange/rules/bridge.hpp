#pragma once

#include <string>
#include <vector>

#include "sim/interchange/rules/torchtitan.hpp"

namespace stagecraft {

/// The rules of Megatron-Bridge that overrides of a recipe break, warnings among them. The text has the recipe's name
/// and overrides, also as options of the launcher: "llama3_8b_pretrain_8gpu_h100_bf16_config -mb 1".
std::vector<Diagnostic> broken_bridge_rules(const std::string& text);

}  // namespace stagecraft
