#pragma once

#include "sim/weights/rule.hpp"

namespace stagecraft {

/// Where a stage stands, as the formulas of the papers count.
struct StagePlace {
  int stage = 0;          ///< k: stages on the longest path less those from here on; 0 at the input of a chain.
  int depth = 1;          ///< D: stages on the longest path.
  int micro_batches = 1;  ///< T: of one update.
};

/// Updates that the prediction for a forward reaches ahead; `exact` are those until its backward. 0: none is needed.
int forward_horizon(Horizon, const StagePlace&, int exact);
/// The same for a backward: none where the horizon ends at the backward itself.
int backward_horizon(Horizon, const StagePlace&);

}  // namespace stagecraft
