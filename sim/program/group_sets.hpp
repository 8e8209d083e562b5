#pragma once

#include <vector>

#include "sim/cluster/phases.hpp"
#include "sim/cost/collective.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/stage_costs.hpp"
#include "sim/plan/stage_groups.hpp"

namespace stagecraft {

/// Groups of a stage that run a collective at the same time, and the devices that have its instructions.
struct GroupSet {
  std::vector<DeviceId> leaders;  ///< Each stands for its cell, and every member of the groups is in one of the cells.
  std::vector<DeviceGroup> groups;  ///< All of one size.
};

/// The devices of the cell that each of Stage::leaders stands for, itself included, in the order of the mesh.
std::vector<std::vector<DeviceId>> cells_of(const Stage&);

/// These groups, joined where they have members in the cell of one leader.
std::vector<GroupSet> group_sets(const Stage&, const Collective&, const std::vector<int>& node_of);

/// The devices that have to begin their ops together, because collectives inside the ops span their cells.
std::vector<std::vector<DeviceId>> joint_devices(const Plan&, const StageCosts&, const std::vector<int>& node_of);

}  // namespace stagecraft
