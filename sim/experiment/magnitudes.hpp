#pragma once

#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"

namespace stagecraft {

/// Figures of a cluster that no machine has, as when a unit was mistaken for another: a line each, with how many.
std::vector<std::string> odd_magnitudes(const Cluster&);

}  // namespace stagecraft
