#pragma once

#include <string>
#include <vector>

#include "backends/box/running_network.hpp"
#include "sim/experiment/run.hpp"

namespace stagecraft {

/// The pairs of devices that exchange messages or take part in collectives.
std::vector<RouteEnds> talking_devices(const CompiledExperiment&);

/// Runs a scenario in a network: a process for each device that has work, as `run --hosts --rank` makes it, which
/// sleeps where it should compute, `scale` times as long as the network is slower. Returns what really happened when,
/// divided by the scale. BackendError with what a process said if one fails.
Timeline run_in_network(const CompiledExperiment&, const box::Entrance&, const std::string& scenario,
                        const std::vector<std::string>& sets, double scale);

}  // namespace stagecraft
