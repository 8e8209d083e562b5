#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"

// Writes a cluster as a platform file of SimGrid, for `stagecraft export simgrid-xml`. sim/experiment/simgrid_xml
// reads such files.

namespace stagecraft {

/// Most hosts in a platform file, both written and read: it has a route between every two of them.
inline constexpr std::size_t kMostHosts = 1024;

/// A platform file of SimGrid: a host for each device, whose speed is what dense layers reach, and an explicit route
/// between every two hosts. It contains no changes. Infeasible when there are more than kMostHosts devices.
std::string simgrid_xml(const Cluster&);

/// Names of the device types that are not presets; the file keeps only their speed and memory.
std::vector<std::string> types_lost(const Cluster&);

}  // namespace stagecraft
