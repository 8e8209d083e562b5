#pragma once

#include <vector>

#include "sim/weights/reads.hpp"

namespace stagecraft {

/// What a rule asks of each stage of a plan whose stages do single tasks (StageTask). A device holds the versions of a
/// layer from its newest back to the oldest that an input gradient there will read. They stand with the input gradient,
/// else with the forward, else with the weight gradient, and the other tasks of the layer on the device have none of
/// their own. InputError for rules that count the stages of a pipeline. O(ops).
IdVector<StageId, StageNeeds> task_needs(const Schedule&, const Plan&, const WeightsRule&);

}  // namespace stagecraft
