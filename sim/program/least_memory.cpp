// The memory that devices need at least for an order of work, from its rows: most orders that do not fit are found so
// without a program.

#include "sim/program/least_memory.hpp"

#include <algorithm>
#include <vector>

#include "sim/plan/overlap.hpp"

namespace stagecraft {

Bytes stash_before_recompute(const StageShape& shape, const StageCost& cost) {
  const MemoryUnits& units = cost.memory;
  return shape.recomputes_all() ? units.stash  // Else the order recomputes.
                                : std::min(cost.entering, units.whole_stash());
}

IdVector<DeviceId, Bytes> least_memory(const Schedule& schedule, const Plan& plan, const StageCosts& costs,
                                       int iterations) {
  IdVector<DeviceId, Bytes> needs(schedule.device_count());
  for (const StageId s : plan.stages.ids())
    for (int r = 0; r < std::ssize(plan.stage(s).leaders); ++r)
      needs[plan.stage(s).leaders[r]] += stage_memory(costs.at(s, r).memory, 0).resident();
  const PieceIndex pieces(plan, iterations);
  std::vector<char> is_recomputed(pieces.size(), 0);
  for (const DeviceId d : needs.ids()) {
    const std::vector<Op>& row = schedule.row(d);
    const auto piece = [&](const Op& op) {
      return pieces.index(op.stage, op.micro, replica_on(plan.stage(op.stage), d));
    };
    for (const Op& op : row)
      if (op.kind == OpKind::Recompute) is_recomputed[piece(op)] = 1;
    Bytes live = needs[d];
    for (const Op& op : row) {
      if (op.kind == OpKind::Update) continue;
      const Stage& stage = plan.stage(op.stage);
      const int replica = replica_on(stage, d);
      const StageCost& cost = costs.at(op.stage, replica, plan.loads.at(op.micro, replica));
      const Bytes whole = cost.memory.whole_stash();
      if (op.kind == OpKind::Forward)
        live += is_recomputed[piece(op)] != 0 ? stash_before_recompute(stage.shape, cost) : whole;
      if (op.kind == OpKind::Recompute) live += whole - stash_before_recompute(stage.shape, cost);
      needs[d] = std::max(needs[d], live + (passes_gradient(op.kind) ? cost.memory.backward_peak() : Bytes{}));
      if (ends_backward(op.kind)) live -= whole;
    }
  }
  return needs;
}

}  // namespace stagecraft
