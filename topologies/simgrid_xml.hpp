#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"

namespace stagecraft {

/// So many hosts a platform file may have, here and when it is read: there is a route between every two.
inline constexpr std::size_t kMostHosts = 1024;

/// A platform file of SimGrid: a host for each device, whose speed is what dense layers reach, and the way between
/// every two of them written out. Changes are not in it. Infeasible when there are more devices than such a file is
/// good for.
std::string simgrid_xml(const Cluster&);

/// Types of devices that are none of the presets: of these the file has speed and memory alone.
std::vector<std::string> types_lost(const Cluster&);

}  // namespace stagecraft
