#pragma once

#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/comms.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft {

/// Puts UNSHARD before the first use of a stage and RESHARD where it is not among the next three that are used; since
/// 2.11 what is left is resharded at the end. O(actions).
std::vector<Action> add_sharding(const std::vector<Action>& row, TorchVersion);
/// Puts REDUCE_GRAD behind the last B or W of each stage.
std::vector<Action> add_reductions(const std::vector<Action>& row, const Plan&);

/// Level 8, for a stage that shards its weights or reduces its gradients in the file: weights are gathered before each
/// use, never twice, and given back; gradients are reduced once, behind the last B or W. PyTorch 2.11 scales gradients
/// in REDUCE_GRAD only, so with it every stage has to have one. O(actions).
std::vector<ScheduleProblem> check_sharding(const ActionTable&, const Plan&, TorchVersion);

}  // namespace stagecraft
