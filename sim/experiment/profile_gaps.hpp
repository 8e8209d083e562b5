#pragma once

#include <string>
#include <vector>

#include "sim/experiment/run.hpp"

namespace stagecraft {

/// What the groups and the divided states of a plan need and the profile of its devices lacks, so that it is computed:
/// layers as the groups divide them, and collectives. Part of a sentence each; empty where there is no profile.
std::vector<std::string> unmeasured_in_groups(const PlannedExperiment&);

}  // namespace stagecraft
