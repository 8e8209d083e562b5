#pragma once

#include <string>

#include "sim/cluster/cluster.hpp"

namespace stagecraft {

/// A platform file of SimGrid: a host for each device, whose speed is what dense layers reach, and the way between
/// every two of them written out. Changes are not in it. Infeasible when there are more devices than such a file is
/// good for.
std::string simgrid_xml(const Cluster&);

}  // namespace stagecraft
