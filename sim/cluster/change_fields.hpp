#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/config/fields.hpp"

namespace stagecraft {

/// The fields `changes` and `jitter`, which every cluster has in addition to the fields of its generator.
std::vector<config::Field> change_fields();

/// Reads these fields from a checked map into a cluster that is otherwise complete. InputError lists every problem.
void read_changes(const config::Value& cluster_map, Cluster& cluster);

}  // namespace stagecraft
