// Numbers the pieces of work of a plan (stage, replica, micro-batch), lists the edges of each stage, and finds the
// replica on a device; overlap.hpp says which pieces share samples.

#include "sim/plan/overlap.hpp"

#include <algorithm>

namespace stagecraft {

PieceIndex::PieceIndex(const Plan& plan, int iterations) {
  constexpr std::size_t kGap = 16;  // A line of the cache has 16 numbers of 4 bytes.
  for (const StageId s : plan.stages.ids()) {
    base_.push_back(size_);
    each_.push_back(plan.stage(s).share == Share::MicroBatches ? 1 : plan.stage(s).leaders.size());
    size_ += each_.back() * plan.micro_batches(s) * iterations + kGap;
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
    const int apart = devices[1].value - devices[0].value, place = (device.value - devices[0].value) / apart;
    if (place >= 0 && place < static_cast<int>(devices.size()) && devices[place] == device) return place;
  }
  const auto at = std::find(devices.begin(), devices.end(), device);
  return at == devices.end() ? -1 : static_cast<int>(at - devices.begin());
}

}  // namespace stagecraft
