#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "sim/cluster/accelerator.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/core/id_vector.hpp"
#include "sim/cost/device_parameters.hpp"
#include "sim/cost/group_shapes.hpp"
#include "sim/cost/layer_collectives.hpp"
#include "sim/cost/operation_kernels.hpp"
#include "sim/cost/pass_time.hpp"
#include "sim/cost/profile.hpp"
#include "sim/model/model_graph.hpp"

namespace stagecraft {

class LinkCollectives;
struct LinkFloor;

/// Where the price of a collective comes from: what the profile measured, a curve of the system, the links of the
/// cluster, or the constants of the device type, in this order. Nothing where nothing moves.
enum class PriceSource : std::uint8_t { Nothing, Profile, Curve, Links, Constants };
struct Price {
  Seconds time;
  PriceSource from = PriceSource::Nothing;
};

/// What prices the layers of a model: a framework, a number format, and the figures of every device type of the
/// cluster. A framework that prices takes them from the shapes of operations.
struct CostRules {
  SoftwareStack software;
  NumberFormat format = NumberFormat::Bf16;
  IdVector<DeviceTypeId, Accelerator> accelerators;
  NodeShape node;
  std::shared_ptr<const LinkCollectives> links;  ///< Needed by device types without measured collectives.
  bool lists_rounds = false;  ///< Equal collectives of an op stay apart and in the order of the layers.
  bool flows = false;         ///< Programs play collectives as messages on the links.
  bool braids = false;        ///< Ops that run as one hide each other's collectives of tensor groups.
  /// Collectives of profiles come before computed ones. Empty without profiles, null for types without one.
  IdVector<DeviceTypeId, std::shared_ptr<const Profile>> profiles;

  /// The price list: a round of the collective without contention. By the links, groups stand on the first devices of
  /// the cluster, unless their devices are given. Sums of gradients and gathers of weights run as rings.
  Price price(const Collective&, const GroupShape&, DeviceTypeId, const std::vector<DeviceId>* devices = nullptr) const;
  /// price() of a collective of a stage, whose group its shape gives.
  Price price_by_shape(const Collective& c, const StageShape& shape, DeviceTypeId type) const {
    return price(c, group_of(c, shape, node), type);
  }
  /// A time that no such collective of these groups at once can beat on the links between their very devices. Zero
  /// where a profile has its price, which was measured with its links.
  LinkFloor floor(const Collective&, const Price&, const std::vector<std::vector<DeviceId>>& groups) const;
  RunFormats formats(DeviceTypeId type) const { return {format, accelerators[type].wide_format()}; }
};

/// The rules of `software: none`, where every device type has its peak alone.
std::shared_ptr<const CostRules> rules_without_software(const Cluster&);

/// Which collectives of the ops of a stage are instructions of their own.
Written written_collectives(const CostRules&, const StageShape&);

/// What a profile has a collective as.
inline CollectiveUse use_of(const Collective& c) {
  return c.axis == Axis::Data ? CollectiveUse::Parameters : CollectiveUse::Ops;
}

/// The floor of a round of each collective of a stage where it stands. Empty: prices by shape have none.
using MinTime = std::function<Seconds(const Collective&)>;
/// A price by shape where the stage stands: no less than the floor there.
inline Seconds not_below_floor(Seconds by_shape, const Collective& c, const MinTime& min_time) {
  return min_time ? std::max(by_shape, min_time(c)) : by_shape;
}

/// The figures of a device type that has no file of measured ones: a share of the peak for every product, the bandwidth
/// of its memory, and collectives at the bandwidth and latency of the links inside a node.
Accelerator accelerator_from_rates(const DeviceType&, NumberFormat, const Cluster&);

/// The passes of operations on one device of a stage, for the load of each replica. With `measured` times of the
/// device's part, kernels take these, and the collectives that these contain are left out; it may be null.
EachPass<PassCost> passes_of(const std::vector<Operation>&, const StageShape&, const CostRules&, DeviceTypeId,
                             const Precision&, const Load&, const MeasuredLayer* measured = nullptr,
                             const MinTime& = {});

/// What a sum of gradients takes after a backward that hides this share of it.
inline Seconds exposed_sum(const Collectives& sum_of_gradients, double overlap) {
  return (1 - overlap) * cost_of(sum_of_gradients);
}
/// The sum of these gradients before an update. Divided states are summed by a reduce-scatter inside a group, whose
/// parts an all-reduce sums over the copies once in an iteration (PyTorch's HSDP, Megatron-LM's
/// num-distributed-optimizer-instances). Nothing of it is `hidden` here: how much of it a backward hides, the caller
/// decides by SoftwareStack::hides() or by simulation.
Collectives sum_of_gradients(const DeviceParameters&, const StageShape&, const CostRules&, DeviceTypeId);
/// The gather of updated weights, which the next forward hides as far as the stack says.
Collectives gather_of_weights(const DeviceParameters&, const StageShape&, const CostRules&, DeviceTypeId);
/// A gather of divided weights for a pass, and the sum of its gradients. Where the stack gathers ahead, the pass hides
/// them.
Collectives gather_for_pass(const DeviceParameters&, const StageShape&, const CostRules&, DeviceTypeId, const MinTime&);
Collectives sum_of_pass(const DeviceParameters&, const StageShape&, const CostRules&, DeviceTypeId, const MinTime&);

/// Time of one optimizer step on a device that has these parameters.
Seconds optimizer_time(const DeviceParameters&, const StageShape&, const CostRules&, DeviceTypeId);

}  // namespace stagecraft
