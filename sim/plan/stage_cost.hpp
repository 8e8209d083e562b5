#pragma once

#include <vector>

#include "sim/cost/cost_table.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// What one micro-batch costs on one replica of a stage, and what the stage keeps in memory there.
struct StageCost {
  Seconds forward, input_gradient, weight_gradient, backward, recompute, update;
  Seconds touch;  ///< To read or write the weights once.
  Bytes weights;  ///< One version.
  Bytes gradients, optimizer;
  Bytes stash;             ///< One micro-batch, from forward to backward.
  Bytes boundary;          ///< What remains of the stash when the stage recomputes.
  Bytes remade{};          ///< Made and dropped within a backward: the largest inside of an attention.
  Bytes gradient_traffic;  ///< Reduced among the replicas in every update.
  Traffic traffic{};       ///< Of shared memory, while the ops run.
  Bytes update_traffic{}, touch_traffic{};
};

/// costs[stage][replica].
using StageCosts = std::vector<std::vector<StageCost>>;

StageCosts stage_costs(const Plan&, const CostTable&);

/// The same cost for every stage: for plans made without a model.
StageCosts uniform_costs(const Plan&, const StageCost&);

}  // namespace stagecraft
