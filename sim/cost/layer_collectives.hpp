#pragma once

#include <vector>

#include "sim/cost/collective.hpp"
#include "sim/cost/group_shapes.hpp"
#include "sim/cost/load.hpp"
#include "sim/cost/stage_shape.hpp"

namespace stagecraft {

/// The collectives of a layer in its forward and its gradients, in the order of its operations, for the load of each
/// replica. They have no cost yet.
///
/// Arrays between operations are whole on each device of the tensor group or divided by rows (sequence parallelism), or
/// they are divided by columns, heads or words. Where a divided operation reads an undivided array, the forward gathers
/// its rows and the input gradient is summed; where a row-divided product or an embedding makes partial sums, these are
/// summed and the gradient is gathered. With sequence parallelism a sum is a reduce-scatter, a gather an all-gather,
/// and weight gradients need the gathered rows once more. Without it only the sums remain, as all-reduces: 2 for each
/// pass of a transformer layer, against 2 + 2 and 2 + 2 + 2 (Korthikanti et al., MLSys 2023).
///
/// A loss over divided words needs three sums of one fp32 number for each row. Attention over a divided sequence brings
/// in the keys and values of the other devices. Experts get their rows, and give them back, by all-to-alls; an
/// expert-tensor group gathers these rows and sums the partial results. `dispatch_bytes` of a number travel to experts,
/// forward and as a gradient, where it is above 0. With one copy of a row for each node, an all-to-all is one inside
/// the nodes and one across them at the same time. `only` has a flag for each operation whose collectives are asked
/// for; empty: all of them.
EachPass<Collectives> collectives_of(const std::vector<Operation>&, const StageShape&, const NodeShape&, const Load&,
                                     double number_bytes, double dispatch_bytes = 0,
                                     const std::vector<bool>& only = {});

}  // namespace stagecraft
