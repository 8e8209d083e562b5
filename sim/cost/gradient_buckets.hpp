#pragma once

#include <vector>

#include "sim/cost/software.hpp"
#include "sim/cost/stage_cost.hpp"

namespace stagecraft {

/// Gradients that are summed together, of the dense parameters of a device or of its experts.
struct GradientBucket {
  DeviceParameters parameters;
  double after_backward = 1;  ///< Share of the last backward after which all of its gradients are there.
  double after_weights = 1;   ///< Share of the last weight gradient, where the backward is split.
};

/// The buckets of a stage whose micro-batches have this load, in the order in which they are complete. A
/// backward makes the gradients of its last layer first; the gradients of a layer come evenly while it runs, so a
/// bucket may end inside a layer. Experts have buckets of their own, as in Megatron-LM. `gradient_bytes` is the size of
/// one gradient.
std::vector<GradientBucket> gradient_buckets(const CostTable&, const StageShape&, DeviceTypeId, const Load&,
                                             const BucketRule&, double gradient_bytes);

}  // namespace stagecraft
