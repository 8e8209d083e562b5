#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/model/operation.hpp"

namespace stagecraft {

/// Modules of a layer whose inputs may wait for their backward in the memory of a host, by the names that Megatron-LM
/// 0.20 has for them in --offload-modules. attn_norm and mlp_norm are the norms of a layer, qkv_linear its first
/// products (of latent attention: those to short vectors), core_attn the inside of attention and attn_proj the product
/// after it; expert_fc1 and moe_act are the first product and the activation of experts, and fused_group_mlp is both
/// with the second product.
const std::vector<std::string>& offload_modules();
/// Whether only layers with experts have the module.
bool is_module_of_experts(std::string_view name);

/// Whether an array that these operations keep is an input of one of the modules. Statistics and probabilities of
/// attention are none.
bool is_input_of(const std::vector<std::string>& modules, const KeptArray&, const std::vector<Operation>&);

}  // namespace stagecraft
