#pragma once

#include <span>

#include "sim/cluster/conditions.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

/// Throws Infeasible "down" when the first instruction without an end waits for a device or link that stays down, or is
/// never up for long enough. An end is missing when it is negative or kForEver.
void throw_if_held_up(const Program&, const Cluster&, const Conditions&, std::span<const double> end);

}  // namespace stagecraft
