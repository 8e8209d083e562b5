#include "sim/plan/overlap.hpp"

#include <algorithm>

namespace stagecraft {

PieceIndex::PieceIndex(const Plan& plan, int iterations) {
  base_.push_back(0);
  for (int s = 0; s < plan.stage_count(); ++s) {
    const StageId stage{s};
    each_.push_back(plan.stage(stage).share == Share::MicroBatches ? 1 : plan.stage(stage).devices().size());
    base_.push_back(base_.back() + each_.back() * plan.micro_batches(stage) * iterations);
  }
}

EdgeLists::EdgeLists(const Plan& plan) : out(plan.stages.size()), in(plan.stages.size()) {
  for (std::size_t e = 0; e < plan.edges.size(); ++e) {
    out[plan.edges[e].from].push_back(static_cast<int>(e));
    in[plan.edges[e].to].push_back(static_cast<int>(e));
  }
}

int place_of(const std::vector<DeviceId>& devices, DeviceId device) {
  // Replicas mostly lie as far from each other as the first two do, so that nothing has to be searched.
  if (devices.size() > 1 && devices[1] != devices[0]) {
    const int apart = devices[1] - devices[0], place = (device - devices[0]) / apart;
    if (place >= 0 && place < static_cast<int>(devices.size()) && devices[place] == device) return place;
  }
  const auto at = std::find(devices.begin(), devices.end(), device);
  return at == devices.end() ? -1 : static_cast<int>(at - devices.begin());
}

int replica_on(const Stage& stage, DeviceId device) { return place_of(stage.devices(), device); }

}  // namespace stagecraft
