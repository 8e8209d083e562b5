#pragma once

#include <vector>

#include "sim/cluster/phases.hpp"
#include "sim/cost/collective.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// The groups of a collective on the mesh of a stage, each of at least two devices. `node_of` has the node of each
/// device; empty: all are on one.
std::vector<DeviceGroup> groups_of(const Stage&, const Collective&, const std::vector<int>& node_of);

}  // namespace stagecraft
