#pragma once

#include <string>
#include <vector>

#include "backends/box/running_network.hpp"
#include "sim/experiment/run.hpp"

namespace stagecraft {

/// The pairs of devices that send each other messages or are members of the same collective in the real run.
std::vector<RouteEnds> talking_devices(const CompiledExperiment&);

/// For `validate --network`: runs a scenario in a network with a process for each device that has work, as `run --hosts
/// --rank` makes it. The processes sleep where they should compute, `scale` times as long as planned. Returns the
/// measured Timeline, with its times divided by `scale`. BackendError with what a process printed if one fails.
Timeline run_in_network(const CompiledExperiment&, const box::RunningNetwork&, const std::string& scenario,
                        const std::vector<std::string>& sets, double scale);

}  // namespace stagecraft
