#pragma once

#include <vector>

#include "sim/experiment/run.hpp"
#include "sim/search/network_parts.hpp"

// How groups may divide a model among devices, for plan_variants().

namespace stagecraft {

/// All numbers that divide this one, in ascending order.
std::vector<int> divisors_of(int number);

/// Lists of devices, of which the first is empty and stands for the whole cluster: each part of its network, which may
/// do better alone than over slow links; for time, the devices of the fastest types alone, because slower ones hold up
/// a plan that gives all ranks as many layers; otherwise, because fewer devices can be better, numbers of one type.
std::vector<std::vector<DeviceId>> devices_of_groups(const PlannedExperiment&, const NetworkParts&, bool for_time);

/// Divisions of this number of devices, of which each rank of a pipeline has degrees.devices(): tensor inside a node,
/// context for long sequences, experts, stages, and replicas for the rest, which divide the states of the optimizer.
/// `written` has what the search does not choose.
std::vector<Degrees> group_divisions(const PlannedExperiment&, const Degrees& written, int devices);

/// Devices that divide the states, 0 for all: the number of the plan, and without one weights inside of a node too,
/// whose gathers then do not leave it (HSDP).
std::vector<int> shard_groups_of(const PlanSpec&, int node_devices, const Degrees&, StateSharding);

/// A copy of a row for each node differs from one for each expert where experts are on several nodes. A dispatcher
/// that the plan names stays.
std::vector<ExpertDispatch> dispatchers_of(const PlanSpec&, int node_devices, const Degrees&, bool names_dispatcher);
/// Whether a plan says how rows reach their experts.
bool names_dispatcher(const PlanSpec&);

}  // namespace stagecraft
