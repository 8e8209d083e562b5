#pragma once

#include "sim/plan/placement.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// The pipeline ranks of a plan: the devices, or groups of them, without replicas.
int pipeline_ranks(const Plan&);

/// Stages on each rank where a schedule that places them so takes the place of one with `per_rank` of them on the same
/// ranks: as many, or the fewest that make it what it is.
int stages_on_rank(const PlacementRule&, int per_rank);

}  // namespace stagecraft
