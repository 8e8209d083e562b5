#pragma once

#include <vector>

#include "sim/core/ids.hpp"

namespace stagecraft::test {

/// `count` devices from `first` on.
inline std::vector<DeviceId> device_range(int first, int count) {
  std::vector<DeviceId> devices;
  for (int d = 0; d < count; ++d) devices.emplace_back(first + d);
  return devices;
}

}  // namespace stagecraft::test
