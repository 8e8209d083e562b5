#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// The devices that each device of a folded program stands for, itself first. All stages have groups of one size.
class GroupMembers {
 public:
  explicit GroupMembers(const Plan& plan, int devices) : size_(plan.stages.front().shape.degrees.group()) {
    members_.resize(std::max(devices, plan.device_count()));
    for (const DeviceId d : members_.ids()) places_.push_back({d, 0});
    for (const Stage& stage : plan.stages)
      for (int r = 0; r < std::ssize(stage.leaders); ++r) {
        const auto first = stage.all_devices().begin() + static_cast<std::ptrdiff_t>(r) * size_;
        add(stage, {first, first + size_});
      }
  }

  int size() const { return size_; }
  int devices() const { return static_cast<int>(members_.size()); }
  DeviceId at(DeviceId leader, int member) const {
    return members_[leader].empty() ? leader : members_[leader][member];
  }
  /// The device that stands for another one in the folded program, and the place of that one in its group.
  std::pair<DeviceId, int> place_of(DeviceId device) const { return places_[device]; }

 private:
  void add(const Stage& stage, std::vector<DeviceId> group) {
    std::vector<DeviceId>& members = members_[group.front()];
    if (members.empty()) members = group;
    for (int m = 0; m < size_; ++m) places_[group[m]] = {group.front(), m};
    if (members != group)
      throw InputError(fmt::format("stage '{}' and another stage have different groups that share devices", stage.name),
                       "give stages that share devices equal groups, or simulate them without run.detail=devices");
  }

  int size_;
  IdVector<DeviceId, std::vector<DeviceId>> members_;
  IdVector<DeviceId, std::pair<DeviceId, int>> places_;
};

}  // namespace stagecraft
