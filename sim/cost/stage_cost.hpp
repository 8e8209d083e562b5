#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/cost/cost_table.hpp"
#include "sim/cost/stage_memory.hpp"
#include "sim/cost/stage_shape.hpp"

namespace stagecraft {

/// The collectives of the ops of a stage for one micro-batch.
struct StageCollectives {
  EachPass<Collectives> passes;
  Collectives update;        ///< The gather of updated weights.
  Collectives gradient_sum;  ///< Over the devices that have the same parameters.
  Written written = Written::None;
  double pair_overlap = 0;  ///< Share of their exchanges that a forward and a backward that run as one hide.
  bool braids = false;      ///< Ops that run as one hide all collectives of their tensor groups.
  double taken = 0;  ///< Share of the multiprocessors that an exchange of experts takes from computation next to it.

  /// All of one forward, one backward and one update, each of them once.
  Collectives joined() const;
  /// Whether a Program writes this one. Where instructions take their cost, an exchange across nodes has it in the one
  /// inside of them.
  bool writes(const Collective&) const;
  /// The share that ops which run as one hide of this one.
  double hidden_share(const Collective&) const;
  /// No device spends less time on an op, alone or in a pair, that has this pass and this list: the instruction, and
  /// the collectives that no pair hides. Where collectives are messages, the instruction alone.
  Seconds least_time(const TimeByClass& pass, const Collectives&) const;
};

/// What one micro-batch costs on one device of a stage, and what the stage keeps in memory there.
struct StageCost {
  Seconds forward, input_gradient, weight_gradient, backward, recompute, update;
  Seconds touch;  ///< Time to read or write the weights once.
  MemoryUnits memory{};
  Bytes entering{};   ///< The inputs of the stage: the whole stash in an order that recomputes by itself.
  Traffic traffic{};  ///< Bytes of shared memory that each op reads and writes.
  Bytes update_traffic{}, touch_traffic{};
  /// Where the time goes, of the ops and of the update; without prices all of it is `other`.
  EachPass<TimeByClass> passes{};
  TimeByClass update_parts{};
  std::shared_ptr<const StageCollectives> collectives{};  ///< Null where none has a price.
  /// The part of the vocabulary that its rank has (StageShape::vocabulary), without the sums of all ranks: its forward
  /// and both gradients, the stash from the scores to their gradient and the workspace. Null where no rank has a part.
  std::shared_ptr<const StageCost> vocabulary{};

  /// Which of them a Program writes next to the ops. The times of the ops contain the others.
  Written written() const { return collectives ? collectives->written : Written::None; }
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

/// The shapes by which the layers of a stage are priced: where only its first layers run again, the others keep all.
/// Layers without attention count only in a model that has none.
class LayerShapes {
 public:
  LayerShapes(const StageShape&, const ModelGraph&);
  bool runs_again(LayerId id) const { return stage_.recomputed_layers == 0 || again_.contains(id); }
  const StageShape& shape_of(LayerId id) const { return runs_again(id) ? stage_ : without_; }

 private:
  const StageShape& stage_;
  StageShape without_;  ///< The stage without recomputation, if some of its layers have none.
  std::set<LayerId> again_;
};

/// The cost of a stage for micro-batches of this load on a device of this type.
StageCost stage_cost(const CostTable&, const StageShape&, DeviceTypeId device_type, const Load&, const MinTime& = {});

/// What a layer adds to the ops of such a stage. An update belongs to the stage as a whole, as memory does.
StageCost layer_cost(const CostTable&, const StageShape&, LayerId, DeviceTypeId, const Load&);

/// Weights, gradients and states of the optimizer on each device, without what FSDP gathers.
MemoryUnits resident_memory(const StageShape&, const ModelGraph&, const SoftwareStack&);

/// Weights, gradients and states of the optimizer for this number of parameters.
MemoryUnits parameter_memory(double parameters, const Precision&);

/// Memory of all that a layer owns, and what each device of a group keeps for a micro-batch of this load.
/// Where its stage recomputes all, the layer keeps its inputs; the stage as a whole keeps only what enters it. Without
/// rules, each array that the layer keeps has the format of activations.
MemoryUnits layer_memory(const ModelGraph&, LayerId, Recomputation, const Load&, const Degrees& = {},
                         const CostRules* = nullptr);

/// The keys and values that the attentions of a layer make for such a micro-batch on each device of the stage: what
/// later slices of its sequence read.
Bytes keys_and_values(const CostTable&, const StageShape&, LayerId, const Load&);

/// Keeps keys and values that a stage would recompute, for later slices of the sequence.
void keep_keys_and_values(const CostTable&, const StageShape&, const Load&, MemoryUnits&);

/// What each device keeps of a micro-batch of this load for the inputs of modules (offloaded_arrays.hpp) that no
/// backward computes again: a part of the stash of a stage that does not recompute whole layers.
Bytes module_inputs(const ModelGraph&, const StageShape&, const Load&, const std::vector<std::string>& modules,
                    const CostRules* = nullptr);

/// What a layer computes again for each sample.
Flops recomputed_work(Recomputation, const Layer&);

}  // namespace stagecraft
