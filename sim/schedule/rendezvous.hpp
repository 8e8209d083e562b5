#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/actions.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft {

/// Which messages of a rank wait for one another.
enum class CommStreams : std::uint8_t {
  Single,    ///< All: batch_isend_irecv on one process group.
  Pair,      ///< Those with the same peer: a communicator for each pair of ranks.
  Direction  ///< Those with the same peer and of the same kind, activations or gradients.
};

struct RendezvousOptions {
  CommStreams streams = CommStreams::Single;
  bool grouped = false;    ///< Neighbouring messages of a stream are one batch, as in ncclGroup.
  double message = 1;      ///< Bytes of every message.
  double eager_below = 0;  ///< Smaller messages leave without their receiver.
};

/// Level 6: computations and streams of messages run beside each other, each in order; a batch starts when all it sends
/// is made, and ends when the other side of each of its messages has started. Reports the shortest circle of waits.
/// The table has to have passed the levels before. O(actions).
std::vector<ScheduleProblem> check_rendezvous(const ActionTable&, const Plan&, const RendezvousOptions&);

}  // namespace stagecraft
