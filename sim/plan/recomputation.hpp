#pragma once

#include "sim/cost/cost_table.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// What a layer of a stage keeps of one micro-batch on a replica, and what it makes again.
struct LayerMemory {
  Bytes kept;               ///< From its forward to its backward.
  Bytes remade_with_stage;  ///< By the forward of the stage that runs again, so with that of all its other layers.
  Bytes remade_alone;       ///< Within its own backward: of a stage one layer's at a time.
};

LayerMemory layer_memory(const Stage&, const ModelGraph&, LayerId, double samples);

/// The share of the layer's forward that runs again, so of its time and traffic.
double share_again(const Stage&, const LayerCost&);

}  // namespace stagecraft
