#pragma once

#include <span>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

/// What slow start adds to each transfer in seconds: slow_start_delay() for the first of each connection, which is what
/// one stream of a device sends to one other device, and 0 for others. Empty where no route has slow start. `routes`
/// has one for each of Program::routes.
std::vector<double> slow_start_delays(const Program& program, std::span<const Route> routes);

}  // namespace stagecraft
