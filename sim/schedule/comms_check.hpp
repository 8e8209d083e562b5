#pragma once

#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/actions.hpp"
#include "sim/schedule/rendezvous.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft {

/// Level 5: every output that crosses ranks has one SEND behind the op that makes it and one RECV before the op that
/// uses it; nothing else is sent; and messages from one rank to another are received in the order they are sent, in
/// each channel that the streams have. The computations have to have passed the levels before. O(actions).
std::vector<ScheduleProblem> check_comms(const ActionTable&, const Plan&, CommStreams);

}  // namespace stagecraft
