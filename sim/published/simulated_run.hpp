#pragma once

#include "sim/cost/pass_time.hpp"

namespace stagecraft {

/// What the simulation of one iteration of a run says of it.
struct SimulatedRun {
  Seconds time;
  Bytes memory;       ///< Peak of the fullest device.
  TimeByClass spent;  ///< Where the time goes, mean over the devices; with `idle` it sums to `time`.
  Seconds idle;
  Flops work;             ///< Operations of one device, recomputation included, mean over the devices.
  double parameters = 0;  ///< Parameters of the model.
};

}  // namespace stagecraft
