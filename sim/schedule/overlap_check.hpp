#pragma once

#include <vector>

#include "sim/schedule/schedule.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft {

/// Level 3: ops that run as one start when the inputs of all are there, so none of them can need another: two of one
/// stage and micro-batch, or with `slices` two forwards or two gradients of one sequence. The order has to have passed
/// the levels before. O(ops log group).
std::vector<ScheduleProblem> check_overlaps(const Schedule&, int slices, std::size_t most);

}  // namespace stagecraft
