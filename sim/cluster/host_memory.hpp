#pragma once

#include "sim/cluster/cluster.hpp"
#include "sim/config/fields.hpp"

namespace stagecraft {

/// The field `host` of a cluster: the memory of the host of each node, and the links to it.
config::Field host_memory_field();

/// Gives each node its memory and each device its links to it, if the checked map has the field.
void read_host_memory(const config::Value& checked, Cluster&);

}  // namespace stagecraft
