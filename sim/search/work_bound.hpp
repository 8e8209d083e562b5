#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/cluster/link_collectives.hpp"
#include "sim/experiment/run.hpp"
#include "sim/search/pack_choices.hpp"
#include "sim/search/search_objective.hpp"

namespace stagecraft {

/// Lower bounds on the period of plans that are not made yet: all work of the model, divided among the ranks as if
/// layers could be split. It needs no planner, so that thousands of plans can wait in a queue until it is their turn.
class WorkBound {
 public:
  explicit WorkBound(const PlannedExperiment& configured) : configured_(configured) {}

  /// A chain of stages on `ranks` equal shares of these devices, in this order, for one micro-batch; where these are
  /// packs, for the mean of them. `copies` of every stage divide the micro-batches: 2 where a schedule runs the model
  /// in both directions.
  Seconds micro_batch(const PlanSpec&, int ranks, int copies, const std::vector<DeviceId>& devices, const PackChoice&);

  /// What the work of a micro-batch adds at least to the amount of the objective, on the same devices.
  double price(const PlanSpec&, int ranks, const std::vector<DeviceId>& devices, const SearchObjective&,
               const PackChoice&);

  /// The fullest device of `ranks` equal shares keeps at least the mean of all weights, gradients and states of the
  /// optimizer as groups and replicas divide them, and of the stash of a micro-batch: of the pack with the most tokens.
  Bytes memory(const PlanSpec&, int ranks, const PackChoice&);

 private:
  /// What the layers add to the work of a device for each micro-batch, in seconds.
  struct LayerSeconds {
    std::vector<double> lower_bound;   ///< No order of work takes less.
    std::vector<double> instructions;  ///< Without the collectives that are instructions, in full power.
  };
  /// The loads of a replica's micro-batches, and a number for them: that of its samples, or one below zero for packs.
  struct ReplicaLoads {
    int number = 0;
    LoadShares shares;
  };
  /// The loads of the replica with the fewest samples, which is the first one, or with `of_largest` the most.
  ReplicaLoads loads_of(const PlanSpec&, const PackChoice&, bool of_largest) const;
  /// The mean of all replicas where these are packs, else the replica with the fewest samples.
  ReplicaLoads mean_loads_of(const PlanSpec&, const PackChoice&) const;
  /// ReplicaLoads::number, kind of recomputation, degrees and sharding.
  using LayerKey = std::tuple<int, int, std::string>;
  static LayerKey layer_key(const PlanSpec&, int ranks, const ReplicaLoads&);
  const LayerSeconds& layers(const PlanSpec&, int ranks, const ReplicaLoads&, DeviceTypeId);
  /// Weights, gradients and states of the optimizer of the whole model, on each device of a group.
  Bytes resident(const PlanSpec&, int ranks);

  const PlannedExperiment& configured_;
  std::map<std::pair<LayerKey, DeviceTypeId>, LayerSeconds> layers_;
  std::map<std::tuple<LayerKey, int, std::vector<int>>, Seconds> bounds_;  ///< [, copies, ranks by type]
  std::map<std::tuple<Load, int, std::string>, Bytes> stashes_;            ///< [load, kind of recomputation, group]
  std::map<std::string, Bytes> resident_;                                  ///< [replicas and group]
};

/// What the devices of a plan do and keep whatever the order of work.
struct PlanBound {
  Seconds work;     ///< Work of the busiest device: no order has a shorter period, also of those without a flush.
  Seconds period;   ///< No order of work that flushes has a shorter period.
  Seconds unsplit;  ///< No such order whose backwards compute both gradients at once has a shorter period.
  Bytes memory;     ///< The fullest device needs at least so much.
  std::map<DeviceTypeId, Seconds> work_of_type;  ///< Work of all devices of a type, with all members of groups.
  bool fits = true;                              ///< No device needs more than it has.
};

/// Every device runs its computations and its updates. If every iteration starts with the weights of the one before, a
/// device also waits, between its last gradient and the next forward of its first stage s. Its replicas sum their
/// gradients and update. A message takes the gradient down to the stage in front, which sums, updates and sends the
/// next micro-batch up:
///
///   wait(s) = max(sum(s) + update(s), wait(s - 1) + backward(s - 1) + forward(s - 1) + messages(s - 1, s))
///   period >= computations of the device + wait(s)
///
/// All other computations of the device are between the first forward and the last gradient of its first stage, but
/// split weight gradients, which may fill the wait, as updates of other stages may; then the larger of the two counts.
/// The weight gradients of the stage itself come before its sum.
///
/// A device sends one message at a time. The activations of all m micro-batches go through each boundary, after the
/// first forward in front of it, and the gradient of the last one comes back:
///
///   period >= forward(s - 1) + m message(s - 1, s) + forward(s) + backward(s) + message(s, s - 1) + backward(s - 1)
///             + wait(s - 1)
///
/// or the other way round, with one activation and m gradients.
///
/// A stash is in use until its micro-batch has been to the end of the chain and back. All stashes of an iteration of m
/// micro-batches, over the stages s of a device and the stages t after them, have the memory that weights leave free:
///
///   period >= sum over s of m stash(s) (forward(s) + sum over t of (forward(t) + backward(t) + messages(t - 1, t))
///             + backward(s)) / memory + sum(first s) + update(first s)
///
/// `links` belong to the cluster; several threads may use them.
PlanBound plan_bound(const PlannedExperiment&, const LinkCollectives& links);

}  // namespace stagecraft
