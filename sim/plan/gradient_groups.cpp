#include "sim/plan/gradient_groups.hpp"

#include <algorithm>

namespace stagecraft {

GradientGroups::GradientGroups(const Plan& plan) {
  for (int s = 0; s < plan.stage_count(); ++s) {
    const Stage& stage = plan.stage(StageId{s});
    const bool second = stage.twin.valid() && stage.twin < s;
    first_.push_back(second ? stage.twin : StageId{s});
    devices_.push_back(second ? std::vector<DeviceId>{} : stage.devices);
    auto& group = devices_[static_cast<std::size_t>(first_.back())];
    for (const DeviceId device : stage.devices)
      if (second && std::find(group.begin(), group.end(), device) == group.end()) group.push_back(device);
  }
}

int GradientGroups::place_of(StageId stage, DeviceId device) const {
  const std::vector<DeviceId>& group = devices(stage);
  return static_cast<int>(std::find(group.begin(), group.end(), device) - group.begin());
}

}  // namespace stagecraft
