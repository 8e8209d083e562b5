#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/schedule/validate.hpp"
#include "sim/schedule_file/actions.hpp"

namespace stagecraft {

/// Which PyTorch reads a file.
enum class TorchVersion : std::uint8_t { V2_8, V2_11 };
TorchVersion torch_version(std::string_view);  ///< "2.8" or "2.11"; InputError otherwise.

/// What PyTorch makes of a compute-only file before it runs it: UNSHARD and RESHARD with at most three active stages,
/// since 2.11 REDUCE_GRAD after the last backward of a stage, then messages. A pass over the ranks takes one action
/// of each, so UNSHARD and REDUCE_GRAD move messages: torch/distributed/pipelining/schedules.py, _add_unshard_reshard,
/// _add_reduce_grad, _add_send_recv.
ActionTable lower_for_torch(const Schedule&, const Plan&, TorchVersion);

/// What `version` cannot express or would not run as meant, level 1, code "torch": recomputation, slices of a sequence,
/// pipelines in both directions, graphs and replicas of stages; OVERLAP_F_B in 2.8. Empty when it can be exported.
std::vector<ScheduleProblem> why_not_torch(const ActionTable&, const Plan&, int slices, TorchVersion version);

}  // namespace stagecraft
