#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/core/id_vector.hpp"
#include "sim/core/quantity.hpp"
#include "sim/cost/cost_rules.hpp"
#include "sim/cost/load.hpp"
#include "sim/cost/profile.hpp"
#include "sim/model/model_graph.hpp"

namespace stagecraft {

/// Bytes that are read from and written to memory that devices share. Zero on a device with its own memory.
struct Traffic {
  Bytes forward{}, input_gradient{}, weight_gradient{};

  Traffic& operator+=(const Traffic& t) {
    forward += t.forward, input_gradient += t.input_gradient, weight_gradient += t.weight_gradient;
    return *this;
  }
};

/// What one layer costs on one device for one micro-batch.
struct LayerCost {
  Seconds forward, input_gradient, weight_gradient;
  Traffic traffic{};
  double core = 0;  ///< Share of the attention core in the operations of the forward, hence in its time and traffic.
  Seconds joint_saving{};  ///< What both gradients in one pass take less than in two: the host launches kernels ahead.

  Seconds backward() const { return input_gradient + weight_gradient - joint_saving; }
};

/// Seconds of every layer on every device type.
///
/// A layer with times for each type of device costs time * samples, one with times for all types that / speed; one that
/// the profile of its device type knows costs what was measured; both are for whole samples. Otherwise the roofline
/// holds: max(flops / (peak * efficiency), bytes / memory_bandwidth) + launch, where the bytes are the weights once and
/// the inputs and outputs of every sample (Williams, Waterman, Patterson, CACM 2009). A rate of zero sets no limit. A
/// pass without flops reads no weights; layers without inputs and flops, and gradients that no layer needs, cost
/// nothing.
///
/// These bytes are also the traffic of devices that share memory, unless a profile of parts of a GPU says how much they
/// slow each other. Layers with given times have none.
///
/// With software that prices, a layer that lists its operations costs what their kernels and collectives do
/// (cost_rules.hpp), and only then can a stage be divided.
class CostTable {
 public:
  /// The rules may be null: then they are rules_without_software().
  CostTable(std::shared_ptr<const ModelGraph>, std::shared_ptr<const Cluster>, const Profiles& profiles = {},
            std::shared_ptr<const CostRules> rules = nullptr);
  /// The model, the cluster and the profile have to outlive the table.
  CostTable(const ModelGraph& model, const Cluster& cluster, const Profile* profile = nullptr);
  /// The costs of a run of forwards alone: gradients, recomputation and updates take no time.
  CostTable of_forwards_alone() const;
  /// The costs for planners where samples are packs, which have this load in the mean.
  CostTable of_packs(const Load& mean) const;
  /// What a number of samples is to planners.
  Load load_of(double samples) const { return {samples * sample_.samples, sample_.rows, sample_.pairs}; }
  LayerCost at(LayerId layer, DeviceTypeId device_type, const Load&) const;
  /// On one device of a stage of this shape, whose layers do not matter. InputError where a layer cannot be divided.
  LayerCost at(LayerId layer, const StageShape&, DeviceTypeId device_type, const Load&) const;
  /// The passes of a layer by class of time, and their collectives; for layers that are not priced by their shapes
  /// everything is `other`.
  EachPass<PassCost> passes(LayerId, const StageShape&, DeviceTypeId, const Load&, const MinTime& = {}) const;
  /// Traffic of shared memory of a layer that is not priced by its shapes, with what its backward recomputes; zero
  /// otherwise.
  Traffic traffic(LayerId layer, const StageShape&, DeviceTypeId device_type, const Load&) const;
  /// The first layer that costs the same, since it has the same operations and needs the same gradients; the layer
  /// itself where its shapes do not price it.
  LayerId alike(LayerId id) const { return alike_[id]; }
  /// What the profile of its device type has for a layer, as a group of this shape divides it.
  std::optional<MeasuredLayer> measured(LayerId, const StageShape&, DeviceTypeId, const Load&) const;
  /// Whether updates and ops of the device type were measured.
  bool is_profiled(DeviceTypeId device_type) const { return profile_of(device_type) != nullptr; }
  const CostRules& rules() const { return *rules_; }
  /// Whether the shapes of its operations price a layer: given and measured times come before computed ones.
  bool has_shapes(LayerId, const StageShape&, DeviceTypeId, const Load&) const;
  /// Time of one optimizer step on `parameters` numbers, memory traffic only: gradients read, weights and optimizer
  /// state read and written.
  Seconds update(double parameters, DeviceTypeId device_type) const;
  /// Overhead of each op of a stage, in addition to its layers; zero without a profile of the device type.
  Seconds operation(DeviceTypeId device_type) const;
  /// Time to read or write `parameters` weights once; 0 where the memory's bandwidth is not known.
  Seconds touch(double parameters, DeviceTypeId device_type) const;
  /// Bytes of shared memory that update() and touch() read and write.
  Bytes update_traffic(double parameters, DeviceTypeId device_type) const;
  Bytes touch_traffic(double parameters, DeviceTypeId device_type) const;

  const ModelGraph& model() const { return *model_; }
  const Cluster& cluster() const { return *cluster_; }

 private:
  /// The passes of layers by shapes, on idle links. The plans of a search have most of them in common.
  struct KnownPasses {
    std::mutex mutex;  ///< Guards the map.
    std::map<std::tuple<LayerId, DeviceTypeId, Load, StageShape>, EachPass<PassCost>> passes;
  };

  const Profile* profile_of(DeviceTypeId device_type) const;
  LayerCost trained_cost(LayerId, DeviceTypeId, const Load&) const;
  EachPass<PassCost> trained_passes(LayerId, const StageShape&, DeviceTypeId, const Load&, const MinTime&) const;
  EachPass<PassCost> passes_by_shape(LayerId, const StageShape&, DeviceTypeId, const Load&, const MinTime&) const;
  bool reads_data(const Layer&) const;
  bool may_have_shapes(const Layer&) const;
  LayerId first_alike(LayerId) const;
  Bytes moved(LayerId, Flops, double bytes_per_weight, const Load&) const;
  double update_bytes(double parameters) const;
  Bytes in_time(double bytes, Seconds, DeviceTypeId device_type) const;

  std::shared_ptr<const ModelGraph> model_;
  std::shared_ptr<const Cluster> cluster_;
  IdVector<DeviceTypeId, std::shared_ptr<const Profile>> profiles_;  ///< Null where nothing was measured.
  std::shared_ptr<const CostRules> rules_;
  IdVector<LayerId, std::string> signatures_;
  IdVector<LayerId, LayerId> alike_;
  IdVector<LayerId, double> weights_;  ///< Parameters that each layer reads, its own or tied.
  IdVector<DeviceTypeId, char> shares_memory_;
  bool forwards_alone_ = false;
  Load sample_;
  std::shared_ptr<KnownPasses> known_ = std::make_shared<KnownPasses>();
};

}  // namespace stagecraft
