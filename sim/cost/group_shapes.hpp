#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/collective_cost.hpp"
#include "sim/cost/collective.hpp"
#include "sim/cost/stage_shape.hpp"

namespace stagecraft {

/// Where the devices of a cluster are, as far as collectives depend on it. Groups fill nodes from a node's first
/// device.
struct NodeShape {
  int devices = 1;   ///< Devices of one node; the smallest node counts.
  Bandwidth card{};  ///< Rate of the way out of a node for each of its devices, when all use it at once.
};
NodeShape node_shape(const Cluster&);

/// The groups of a stage over which an axis set spreads arrays, as collectives see them.
GroupShape tensor_group(const Degrees&, const NodeShape&);
GroupShape context_group(const Degrees&, const NodeShape&);
GroupShape expert_group(const Degrees&, const NodeShape&);
/// Devices that divide each expert.
GroupShape expert_tensor_group(const Degrees&, const NodeShape&);
/// Devices that have the same part of the dense parameters: replicas and context ranks.
GroupShape data_group(const Degrees&, const NodeShape&);
/// Devices that have the same part of the experts.
GroupShape expert_data_group(const Degrees&, const NodeShape&);

/// The group of a device that divides states, and the group with its part in all copies of them: the devices with the
/// same part of the dense parameters, or of the experts, cut into runs of shard_within.
struct ShardGroups {
  GroupShape inner, outer;
};
ShardGroups shard_groups(const StageShape&, const NodeShape&);
ShardGroups expert_shard_groups(const StageShape&, const NodeShape&);

/// The group of a collective, as its price sees it.
GroupShape group_of(const Collective&, const StageShape&, const NodeShape&);

}  // namespace stagecraft
