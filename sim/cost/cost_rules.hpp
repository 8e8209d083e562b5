#pragma once

#include <memory>
#include <vector>

#include "sim/cluster/accelerator.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/core/id_vector.hpp"
#include "sim/cost/group_shapes.hpp"
#include "sim/cost/op_collectives.hpp"
#include "sim/cost/operation_collectives.hpp"
#include "sim/cost/operation_kernels.hpp"
#include "sim/cost/pass_time.hpp"
#include "sim/cost/profile.hpp"
#include "sim/model/model_graph.hpp"

namespace stagecraft {

class LinkCollectives;

/// What prices the layers of a model from the shapes of their operations: a framework, a number format, and the figures
/// of every device type of the cluster.
struct CostRules {
  SoftwareStack software;
  NumberFormat format = NumberFormat::Bf16;
  IdVector<DeviceTypeId, Accelerator> accelerators;
  NodeShape node;
  std::shared_ptr<const LinkCollectives> links;  ///< Needed by device types without measured collectives.
  bool lists_rounds = false;               ///< Equal collectives of an op stay apart and in the order of the layers.
  bool flows = false;                      ///< Programs play collectives as messages on the links.
  std::shared_ptr<const Profile> profile;  ///< Its collectives come before computed ones; may be null.
  DeviceTypeId profiled;                   ///< The type of device that it is of.
  double gathered_bytes = 2;  ///< Bytes of each weight that devices gather which divide states: bf16, as frameworks do.

  /// One collective without contention, by a profile, a curve of the cluster, the constants of the device
  /// type, or the links.
  Seconds time_of(CollectiveKind, const GroupShape&, Bytes, DeviceTypeId) const;
  /// A sum of gradients, or a gather of weights, which run as rings.
  Seconds ring_time(CollectiveKind, const GroupShape&, Bytes, DeviceTypeId) const;
  /// Whether the profile has such collectives, which then take what it says whatever the links are.
  bool is_measured(CollectiveKind, CollectiveUse, const GroupShape&, DeviceTypeId) const;
  /// Whether a curve of the cluster is of such collectives.
  bool has_curve(CollectiveKind, const GroupShape&, DeviceTypeId) const;
  RunFormats formats(DeviceTypeId type) const { return {format, accelerators[type].wide_format()}; }
};

/// Which collectives of the ops of a stage are instructions of their own.
Written written_collectives(const CostRules&, const StageShape&);

/// What a profile has a collective of the ops as.
inline CollectiveUse use_of(const OpCollective& c) {
  return c.axis == Axis::Data ? CollectiveUse::Parameters : CollectiveUse::Ops;
}

/// The figures of a device type that has no file of measured ones: a share of the peak for every product, the bandwidth
/// of its memory, and collectives at the bandwidth and latency of the links inside a node.
Accelerator accelerator_from_rates(const DeviceType&, NumberFormat, const Cluster&);

/// Time of the passes of a layer by class. `backward` is both gradients in one pass, `recompute` what its recomputation
/// repeats.
struct LayerPasses {
  TimeByClass forward, input_gradient, weight_gradient, backward, recompute;
};

/// The passes of operations on one device of a stage, for a micro-batch of `samples` samples of each replica. With
/// `measured` times of the device's part, kernels take these; it may be null.
LayerPasses passes_of(const std::vector<Operation>&, const StageShape&, const CostRules&, DeviceTypeId,
                      const Precision&, double samples, const MeasuredLayer* measured = nullptr);

/// The collectives of these passes, each with the share of it that nothing hides, except those that the measured times
/// contain.
EachPass<OpCollectives> collectives_of(const std::vector<Operation>&, const StageShape&, const CostRules&, DeviceTypeId,
                                       const Precision&, double samples, const MeasuredLayer* measured = nullptr);

/// Time of the sum of gradients before an update, and of the gather of updated weights after it.
struct GradientTimes {
  Seconds sum, gather;
};

/// For this many dense and expert parameters on a device. What the last backward hides is left out. Divided states are
/// summed by a reduce-scatter inside a group, whose parts an all-reduce sums over the copies once in an iteration
/// (PyTorch's HSDP, Megatron-LM's num-distributed-optimizer-instances).
GradientTimes gradient_times(double dense, double experts, const StageShape&, const CostRules&, DeviceTypeId);

/// A collective over the devices that have the same part of the dense parameters, and one for the experts.
OpCollectives over_data(CollectiveKind, GroupPart, double dense_bytes, double expert_bytes, double exposed,
                        const StageShape&, const CostRules&, DeviceTypeId);
/// The devices that divide a state.
GroupPart part_with_states(const StageShape&);

/// This sum and this gather as collectives.
OpCollectives sum_of_gradients(double dense, double experts, const StageShape&, const CostRules&, DeviceTypeId);
OpCollectives gather_of_weights(double dense, double experts, const StageShape&, const CostRules&, DeviceTypeId);

/// Time of one optimizer step on a device that has these parameters.
Seconds optimizer_time(double dense, double experts, const StageShape&, const CostRules&, DeviceTypeId);

}  // namespace stagecraft
