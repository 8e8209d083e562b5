#pragma once

#include <string>

#include "sim/experiment/run.hpp"

namespace stagecraft {

/// Refuses what no real machine does: changes and jitter of the cluster, and plans of single tasks.
void check_real_run(const CompiledExperiment&, const std::string& backend);

/// This machine, and the devices that a real run reports.
std::string machine_text(const Timeline&);

}  // namespace stagecraft
