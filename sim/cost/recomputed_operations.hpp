#pragma once

#include <vector>

#include "sim/cost/stage_shape.hpp"
#include "sim/model/operation.hpp"

namespace stagecraft {

/// The operations of a layer that a backward computes again for the modules of a Recomputation, one flag for each.
/// Norms, activations, and the projections of latent attention from short vectors to heads, with rotations of what they
/// make, cost little time for what they take in memory. DeepSeek-V3 computes them again in its backward (technical
/// report, 2024, 3.2.3 and 3.3.3), and so does Megatron-LM with recompute-modules layernorm, moe_act and mla_up_proj,
/// each of which is a part of them. Modules mlp, moe and shared_experts are dense layers, and layers of experts with
/// their router and exchanges.
std::vector<bool> recomputed_operations(const std::vector<Operation>&, Recomputation);

}  // namespace stagecraft
