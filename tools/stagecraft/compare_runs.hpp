#pragma once

#include "tools/stagecraft/command.hpp"

namespace stagecraft {

/// Prints the numbers of runs that were kept, RUN after RUN, with changes against the first.
int compare_runs(const Arguments&);

}  // namespace stagecraft
