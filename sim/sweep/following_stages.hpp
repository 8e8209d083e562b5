#pragma once

#include <optional>

#include "sim/sweep/sweep.hpp"

namespace stagecraft {

/// The number of stages with which the schedule of a point runs on the devices of the sweep's scenario: the same
/// pipeline ranks with as many stages on each as the schedule needs, as `compare` has them. Nothing where the point has
/// the scenario's schedule or its own number of stages, or where the plan has no number of stages to change.
std::optional<int> following_stages(const Sweep&, const SweepStep& settings);

}  // namespace stagecraft
