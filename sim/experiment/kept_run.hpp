#pragma once

#include <string>

#include "sim/experiment/run.hpp"
#include "sim/output/html.hpp"

namespace stagecraft {

/// results.json of a run, with what it is of.
std::string results_of(const CompiledExperiment&, const Outcome&);

/// Makes a KeptRun of a run that has just ended.
KeptRun kept_run(const std::string& name, const CompiledExperiment&, const Outcome&);

}  // namespace stagecraft
