#pragma once

#include <vector>

#include "sim/program/workload.hpp"

namespace stagecraft::real {

/// The devices of the tensor, context and expert groups that a device of a stage belongs to, and those with copies of
/// its dense layers and of its experts, itself included.
struct GroupDevices {
  std::vector<DeviceId> tensor, context, experts, data, expert_data;
};

inline GroupDevices group_devices(const StageWorkload& stage, int replica) {
  const GroupPlace place = stage.place(replica);
  GroupDevices groups;
  for (int r = 0; r < std::ssize(stage.replicas); ++r) {
    const GroupPlace other = stage.place(r);
    const DeviceId device = stage.replicas[r].device;
    const bool same_replica = other.replica == place.replica;
    if (same_replica && other.context == place.context) groups.tensor.push_back(device);
    if (same_replica && other.tensor == place.tensor) groups.context.push_back(device);
    if (other.expert_replica == place.expert_replica) groups.experts.push_back(device);
    if (other.tensor == place.tensor) groups.data.push_back(device);
    if (other.expert == place.expert && other.expert_tensor == place.expert_tensor)
      groups.expert_data.push_back(device);
  }
  return groups;
}

}  // namespace stagecraft::real
