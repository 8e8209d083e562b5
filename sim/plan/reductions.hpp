#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/id_vector.hpp"
#include "sim/core/quantity.hpp"
#include "sim/cost/gradient_buckets.hpp"

namespace stagecraft {

struct Plan;
struct ModelGraph;
class CostTable;
using ReductionId = Id<struct ReductionTag>;  ///< Index into Plan::reductions.

/// Why several devices hold the same parameters. A class of parameters whose copies lie on other devices than the
/// stage's gets a source here: experts, on the data axis of their own mesh; norms, on the tensor axis.
enum class ReductionSource : std::uint8_t {
  Replicas,       ///< The replicas of a stage and of its twin hold all of its parameters.
  TiedParameters  ///< Layers of several stages share parameters, and each of these stages holds a copy.
};

/// A part of the gradients of a stage, which is summed by itself next to the rest of its last backward.
struct ReductionBucket {
  GradientBucket gradients;
  Bytes bytes = {};                  ///< The array that each group sums.
  std::optional<Seconds> cost = {};  ///< As Reduction::cost, but nothing of it is taken as hidden.
};

/// A sum of gradients that updates wait for.
struct Reduction {
  ReductionSource source = ReductionSource::Replicas;
  std::string name = {};             ///< The tie of the layers; empty for replicas.
  std::vector<StageId> stages = {};  ///< Ascending. Their updates wait for it, and for each other's gradients.
  /// Disjoint process groups of at least two devices, in the order of their ranks. A device in no group has the whole
  /// sum as soon as the reductions in `after` have ended.
  std::vector<std::vector<DeviceId>> groups = {};
  Bytes bytes = {};                  ///< The array that each group sums; zero in plans made without a model.
  std::optional<Seconds> cost = {};  ///< What it takes beyond the end of the backward, where that does not depend on
                                     ///< other messages; else the messages of a ring are played.
  bool scatters = false;             ///< Each device needs the sum of its part alone.
  std::vector<ReductionBucket> buckets = {};  ///< In the order in which they are summed; empty: all at once.
  std::vector<ReductionId> after = {};        ///< Reductions whose sums it adds up; they come earlier in the list.
};

/// Everything that is summed before the updates of a plan, later stages first, then what ties connect. Nothing else
/// decides which devices sum which gradients. Stages that do single tasks sum nothing: edges carry gradients to the
/// update.
IdVector<ReductionId, Reduction> derive_reductions(const Plan&, const ModelGraph&);
/// For plans made without a model: the sums of replicas and twins, of unknown size.
IdVector<ReductionId, Reduction> derive_reductions(const Plan&);

/// Gives every reduction its cost by the rules of the table, whose software prices. A stage with one replica, whose
/// context or expert group has copies of parameters, has no reduction: its update contains that sum.
void price_reductions(Plan&, const CostTable&);

/// Cuts the sums over replicas into buckets by this rule, after they have their costs. Sums inside a group, of
/// each backward, and of tied parameters stay whole.
void cut_into_buckets(Plan&, const CostTable&, const BucketRule&);

/// Updates that reductions connect: none of them runs before every device has reached its own, because each device
/// contributes its gradients by then.
struct UpdateBarrier {
  std::vector<StageId> stages;    ///< In the order of their updates on a device: later stages first, twins together.
  std::vector<DeviceId> devices;  ///< Each device once, by ascending stage.
  std::vector<ReductionId> reductions;  ///< In the order in which they are issued.
};

/// The barriers of a plan, and what the update of each stage waits for.
class UpdateBarriers {
 public:
  explicit UpdateBarriers(const Plan&);

  /// Barriers of later stages come first, because their gradients are complete first.
  const std::vector<UpdateBarrier>& list() const { return barriers_; }
  bool delays(StageId s) const { return index_[s] >= 0; }
  /// Index into list(); only for stages whose updates are delayed.
  int index(StageId s) const { return index_[s]; }
  const UpdateBarrier& at(StageId s) const { return barriers_[index_[s]]; }
  /// Position of the stage's update among all delayed ones of the same number.
  int position(StageId s) const { return position_[s]; }
  /// The reductions of the stage's own gradients, in the order of the list.
  const std::vector<ReductionId>& reductions(StageId s) const { return reductions_[s]; }

 private:
  std::vector<UpdateBarrier> barriers_;
  IdVector<StageId, int> index_, position_;
  IdVector<StageId, std::vector<ReductionId>> reductions_;
};

}  // namespace stagecraft
