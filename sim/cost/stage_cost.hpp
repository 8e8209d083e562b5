#pragma once

#include <memory>

#include "sim/cost/cost_table.hpp"
#include "sim/cost/stage_memory.hpp"
#include "sim/cost/stage_shape.hpp"

namespace stagecraft {

/// What one micro-batch costs on one device of a stage, and what the stage keeps in memory there.
struct StageCost {
  Seconds forward, input_gradient, weight_gradient, backward, recompute, update;
  Seconds touch;  ///< Time to read or write the weights once.
  MemoryUnits memory{};
  Bytes entering{};   ///< The inputs of the stage: the whole stash in an order that recomputes by itself.
  Traffic traffic{};  ///< Bytes of shared memory that each op reads and writes.
  Bytes update_traffic{}, touch_traffic{};
  /// Where the time goes, of the ops and of the update; zero without CostRules.
  LayerPasses passes{};
  TimeByClass update_parts{};
  /// Collectives that a Program writes next to the ops; null where the times of the ops contain all of them.
  std::shared_ptr<const StageCollectives> collectives{};

  Written written() const { return collectives ? collectives->written() : Written::None; }
};

/// The time of each op of a stage for one micro-batch, and of its update.
struct OpTimes {
  Seconds forward, input_gradient, weight_gradient, backward, recompute, update;
};

/// The ops as instructions, without the collectives that a Program writes next to them.
OpTimes times_in_op(const StageCost&);
/// The ops without any collective: what their device computes.
OpTimes computation_times(const StageCost&);
/// No device spends less time on an op: see StageCollectives::least_time().
OpTimes least_times(const StageCost&);

/// Parameters that one device of a stage keeps: dense ones, divided by tensor or whole, and parameters of experts.
/// Layers count that the stage owns, and one copy of all that it shares with a layer of another stage.
struct DeviceParameters {
  double dense = 0, experts = 0;
};
DeviceParameters device_parameters(const std::vector<LayerId>& layers, const Degrees&, const ModelGraph&);

/// The cost of a stage for micro-batches of `samples` samples on a device of this type. Packed sequences will make
/// micro-batches of one stage differ; a class of equal ones then takes the place of `samples`.
StageCost stage_cost(const CostTable&, const StageShape&, DeviceTypeId device_type, double samples);

/// What a layer adds to the ops of such a stage. An update belongs to the stage as a whole, as memory does.
StageCost layer_cost(const CostTable&, const StageShape&, LayerId, DeviceTypeId, double samples);

/// The collectives of the layers of a stage, of each op of one micro-batch. A whole forward of the stage that runs
/// again is an op. Needs CostRules.
EachPass<OpCollectives> layer_collectives(const CostTable&, const StageShape&, DeviceTypeId, double samples);

/// Weights, gradients and states of the optimizer for this number of parameters.
MemoryUnits parameter_memory(double parameters, const Precision&);

/// Parameters that each device of a stage with these layers keeps: all that the layers own, and one copy of all that
/// they share with a layer of another stage.
double parameters_of(const std::vector<LayerId>& layers, const ModelGraph&);

/// Memory that a layer keeps for a micro-batch of `samples` samples. Where its stage recomputes all, the layer keeps
/// its inputs; the stage as a whole keeps only what enters it.
MemoryUnits layer_memory(const ModelGraph&, LayerId, Recomputation, double samples);

/// The share of the layer's forward that is recomputed, hence of its time and traffic.
double recomputed_share(Recomputation, const LayerCost&);

}  // namespace stagecraft
