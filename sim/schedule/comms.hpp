#pragma once

#include <cstdint>
#include <string_view>

#include "sim/plan/plan.hpp"
#include "sim/schedule/actions.hpp"

namespace stagecraft {

/// Which PyTorch reads a file.
enum class TorchVersion : std::uint8_t { V2_8, V2_11 };
TorchVersion torch_version(std::string_view);  ///< "2.8" or "2.11"; InputError otherwise.

/// Where the messages of a compute-only order go.
enum class CommsPlacement : std::uint8_t {
  Lowered,     ///< As torch does it: the receive is posted on the other rank at the moment of the send.
  JustInTime,  ///< Receive right before its use, send right behind its op.
  Prefetch     ///< As JustInTime, but received one op earlier.
};

/// The order with its messages. Needs a schedule without a cycle and a plan of chains; O(ops).
ActionTable add_comms(const Schedule&, const Plan&, CommsPlacement);

/// What torch makes of a compute-only file before it runs it: UNSHARD and RESHARD with at most three active stages,
/// since 2.11 REDUCE_GRAD behind the last backward of a stage, then messages. A pass over the ranks takes one action
/// each, so UNSHARD and REDUCE_GRAD move messages: torch/distributed/pipelining/schedules.py, _add_unshard_reshard,
/// _add_reduce_grad, _add_send_recv.
ActionTable lower_for_torch(const Schedule&, const Plan&, TorchVersion);

}  // namespace stagecraft
