#pragma once

#include "sim/program/lower.hpp"

namespace stagecraft {

/// Time of one prediction or reconstruction: memory traffic alone, in units of `touch`, which reads or writes the
/// weights once. Weights and what leads on or back are read, the prediction is written.
Seconds predict_time(const WeightsRule&, bool for_backward, Seconds touch, const LoweringOptions&);

/// What a rule adds to an update of a stage whose backwards come `delay` updates after their forwards: averages and
/// momenta are read and written in addition to what the optimizer touches anyway. Without delay only momenta count.
Seconds update_extra(const WeightsRule&, Seconds touch, int delay, const LoweringOptions&);

}  // namespace stagecraft
