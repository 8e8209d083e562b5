#pragma once

#include "sim/cost/stage_cost.hpp"

// What the cost of a stage needs of the memory of its layers, whose functions stage_cost.hpp declares.

namespace stagecraft {

/// The memory of a stage, which a load of `entering` bytes enters: one that recomputes all keeps these bytes, if they
/// are less than its stash.
MemoryUnits stage_units(const StageShape&, const ModelGraph&, const CostRules&, Bytes entering, const Load&);

/// Devices that share the rows of an array which every operation reads whole.
double rows_divided(const Degrees&);

/// The gradient of the largest matrix, and a copy of the scores of words, with `each` bytes of a number.
Bytes backward_workspace(const Layer&, const Degrees&, const Load&, double each);

}  // namespace stagecraft
