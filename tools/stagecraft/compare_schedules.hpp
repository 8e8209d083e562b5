#pragma once

#include <vector>

#include "tools/stagecraft/command.hpp"

namespace stagecraft {

/// What `compare --schedules` takes beside the scenario. None has a fallback, so that it shows when one was given.
std::vector<Argument> compare_schedules_arguments();

/// Prints every schedule of --schedules on the scenario RUN, and the answer. 3 when none of them can run.
int compare_schedules(const Arguments&);

}  // namespace stagecraft
