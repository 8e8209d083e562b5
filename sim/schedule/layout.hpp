#pragma once

#include <string_view>
#include <vector>

#include "sim/plan/placement.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// A plan as ranks with an equal number of stages each.
struct Layout {
  std::vector<std::vector<StageId>> stages;    ///< [rank][chunk], in the order of the chain.
  std::vector<std::vector<DeviceId>> devices;  ///< [rank]; several devices are replicas with the same row.

  int ranks() const { return static_cast<int>(stages.size()); }
  int chunks() const { return stages.empty() ? 0 : static_cast<int>(stages.front().size()); }
};

/// A schedule with an empty row for each rank of the plan.
Schedule empty_schedule(const Plan&);

/// The ranks of a plan. InputError when its stages are not placed as the schedule needs them.
Layout layout_of(const Plan&, const PlacementRule&, std::string_view schedule);

/// A plan as an order from outside of it has it, such as a CSV file or a function: each pipeline rank that has stages
/// is one device, numbered in the order of the first stages. Devices without a stage are no ranks there.
struct RankedPlan {
  Plan plan;
  std::vector<DeviceId> devices;             ///< [rank] The first of its devices in the plan that it was made of.
  std::vector<std::vector<StageId>> stages;  ///< [rank]
};
RankedPlan on_ranks(const Plan&);

/// One iteration of an order, without updates: a row for each of these ranks.
Schedule first_iteration(const Schedule&, const RankedPlan&);

/// Appends the ops of one rank, which has a stage for each chunk.
class RankOps {
 public:
  RankOps(std::vector<Op>& ops, const std::vector<StageId>& chunks) : ops_(&ops), chunks_(&chunks) {}
  void add(OpKind kind, int chunk, int micro) { ops_->push_back({kind, false, (*chunks_)[chunk], micro}); }
  void forward(int chunk, int micro) { add(OpKind::Forward, chunk, micro); }
  void backward(int chunk, int micro) { add(OpKind::Backward, chunk, micro); }
  void input_gradient(int chunk, int micro) { add(OpKind::InputGradient, chunk, micro); }
  void weight_gradient(int chunk, int micro) { add(OpKind::WeightGradient, chunk, micro); }
  void recompute(int chunk, int micro) { add(OpKind::Recompute, chunk, micro); }
  /// Makes the last op run as one with the next.
  void join_next() { ops_->back().fused = true; }

 private:
  std::vector<Op>* ops_;
  const std::vector<StageId>* chunks_;
};

}  // namespace stagecraft
