#pragma once

#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"

// Control groups of the system, by which programs on slower devices of a box get less of a core.

namespace stagecraft::box {

/// The part of a core that the programs of each device get, so that devices are as fast relative to each other as the
/// cluster says, also when all compute at once on this many cores. Empty where all are alike.
std::vector<double> core_shares(const Cluster&, int cores);

/// Makes a group for each device; their folder. BackendError where the system has none, or refuses.
std::string make_cpu_groups(const std::string& name, const std::vector<double>& shares);

/// Moves this process, and all that it starts, into the group of a device.
void enter_cpu_group(const std::string& folder, int device);

/// Removes groups without processes. What is left is removed with the next network.
void remove_cpu_groups(const std::string& folder) noexcept;

}  // namespace stagecraft::box
