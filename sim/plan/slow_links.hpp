#pragma once

#include "sim/cost/stage_cost.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// Prices by shape know one rate between nodes, that of the first two of the cluster. This makes the ops of a stage,
/// whose cost stage_cost() has priced so, wait at least for what the links between its very devices carry: over a slow
/// link between sites, or an oversubscribed network. What hides a collective at its price hides as many seconds of it
/// here. Does nothing where collectives are messages on the links, nor for those that a profile has, which knows what
/// they take.
void wait_for_slow_links(const Stage&, const CostTable&, DeviceTypeId, double samples, StageCost&);

}  // namespace stagecraft
