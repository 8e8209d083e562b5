#pragma once

#include <optional>
#include <string>

#include "sim/experiment/run.hpp"
#include "sim/published/predictions.hpp"

namespace stagecraft {

/// A measured run as an experiment: its model with operations, a cluster of its device type with one card for each
/// device, and its layers divided as the closed form divides them. Devices have enough memory for every division,
/// because these runs fitted. `share_factor` multiplies the share of products in the number format of the run.
Experiment experiment_of(const MeasuredRun&, double share_factor = 1);

/// Time of an iteration by simulation on `ideal`, and memory of the fullest device.
struct SimulatedRun {
  Seconds time;
  Bytes memory;
};

/// Nothing, and why, where a scenario cannot say the run, or a schedule cannot run it.
std::optional<SimulatedRun> simulate(const MeasuredRun&, std::string& why_not, double share_factor = 1);

}  // namespace stagecraft
