#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/config/fields.hpp"

namespace stagecraft {

/// The fields `changes` and `jitter` that every cluster has beside those of its generator.
std::vector<config::Field> change_fields();

/// Reads them from a checked map into a cluster that is otherwise complete. InputError with everything that is wrong.
void read_changes(const config::Value& cluster_map, Cluster& cluster);

}  // namespace stagecraft
