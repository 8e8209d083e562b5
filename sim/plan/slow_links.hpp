#pragma once

#include "sim/cost/stage_cost.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// Prices by shape know one rate between nodes, that of the first two of the cluster. This is what the links between
/// the very devices of a stage carry: over a slow link between sites, or an oversubscribed network. Empty where the
/// groups of the stage are inside nodes or collectives are messages on the links.
LeastTimes least_times_on_links(const Stage&, const CostTable&, DeviceTypeId);

}  // namespace stagecraft
