#include "sim/plan/overlap.hpp"

namespace stagecraft {

PieceIndex::PieceIndex(const Plan& plan, int iterations) {
  base_.push_back(0);
  for (int s = 0; s < plan.stage_count(); ++s) {
    const StageId stage{s};
    replicas_.push_back(plan.stage(stage).devices.size());
    base_.push_back(base_.back() + static_cast<std::size_t>(plan.micro_batches(stage)) *
                                       static_cast<std::size_t>(iterations) * replicas_.back());
  }
}

EdgeLists::EdgeLists(const Plan& plan) : out(plan.stages.size()), in(plan.stages.size()) {
  for (std::size_t e = 0; e < plan.edges.size(); ++e) {
    out[static_cast<std::size_t>(plan.edges[e].from)].push_back(static_cast<int>(e));
    in[static_cast<std::size_t>(plan.edges[e].to)].push_back(static_cast<int>(e));
  }
}

int replica_on(const Stage& stage, DeviceId device) {
  for (std::size_t r = 0; r < stage.devices.size(); ++r)
    if (stage.devices[r] == device) return static_cast<int>(r);
  return -1;
}

}  // namespace stagecraft
