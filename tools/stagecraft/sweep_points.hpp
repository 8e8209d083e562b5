#pragma once

#include <string>

#include "sim/sweep/run_sweep.hpp"

namespace stagecraft {

/// Reads every point of a sweep and plans some of them, spread evenly. Prints a note for each that cannot run, because
/// its fields contradict each other or its plan does not fit. Returns what was checked, in words.
std::string check_points(const SweepPlan&);

/// run_sweep() as an Activity that counts points.
SweepEnd run_points(const SweepPlan&, const SweepOptions&);

}  // namespace stagecraft
