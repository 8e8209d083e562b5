#pragma once

#include "sim/sweep/run_sweep.hpp"

namespace stagecraft {

/// run_sweep() as an Activity that counts points.
SweepEnd run_points(const SweepPlan&, const SweepOptions&);

}  // namespace stagecraft
