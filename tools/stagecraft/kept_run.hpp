#pragma once

#include <string>

#include "sim/experiment/run.hpp"
#include "sim/report/html.hpp"

namespace stagecraft {

/// results.json of a run, with what it is of.
std::string results_of(const CompiledExperiment&, const Outcome&);

/// What `run --out` wrote into a folder; InputError when something of it is not there.
KeptRun read_kept_run(const std::string& folder);

/// The same of a run that was just made.
KeptRun kept_run(const std::string& name, const CompiledExperiment&, const Outcome&);

}  // namespace stagecraft
