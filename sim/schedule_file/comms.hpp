#pragma once

#include <cstdint>

#include "sim/plan/plan.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/schedule_file/actions.hpp"

namespace stagecraft {

/// Where the messages of a compute-only order go.
enum class CommsPlacement : std::uint8_t {
  Lowered,     ///< As PyTorch places them: the receive is posted on the other rank at the moment of the send.
  JustInTime,  ///< Receive right before its use, send right after its op.
  Prefetch     ///< JustInTime, but received one op earlier.
};

/// The order with its messages. Needs a schedule without a cycle and a plan of chains; O(ops).
ActionTable add_comms(const Schedule&, const Plan&, CommsPlacement);

/// Places messages as CommsPlacement::Lowered does among rows that may have other actions (UNSHARD, REDUCE_GRAD).
ActionTable lower_comms(const ActionTable&, const Plan&);

}  // namespace stagecraft
