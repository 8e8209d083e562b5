#pragma once

#include <vector>

#include "sim/plan/plan.hpp"

namespace stagecraft {

/// Who adds up gradients with whom before an update: the replicas of a stage, and those of the stage that holds a copy
/// of the same weights.
class GradientGroups {
 public:
  explicit GradientGroups(const Plan&);
  /// The first stage of the group, by which it is known.
  StageId of(StageId s) const { return first_[static_cast<std::size_t>(s)]; }
  /// Devices of the group, each once: those of the first stage, then those of the other. One alone exchanges nothing.
  const std::vector<DeviceId>& devices(StageId s) const { return devices_[static_cast<std::size_t>(of(s))]; }
  bool exchanges(StageId s) const { return devices(s).size() > 1; }
  /// Place of a device of the group among its devices.
  int place_of(StageId, DeviceId) const;

 private:
  std::vector<StageId> first_;
  std::vector<std::vector<DeviceId>> devices_;
};

}  // namespace stagecraft
