#pragma once

#include <vector>

#include "sim/model/operation.hpp"

namespace stagecraft {

/// Operations whose outputs cost little time for what they take in memory: norms, activations, the projections of
/// latent attention from short vectors to heads, and rotations of such outputs. DeepSeek-V3 computes them again in its
/// backward (technical report, 2024, 3.2.3 and 3.3.3), and so does Megatron-LM with recompute-modules layernorm,
/// moe_act and mla_up_proj. One flag for each operation.
std::vector<bool> recomputed_outputs(const std::vector<Operation>&);

}  // namespace stagecraft
