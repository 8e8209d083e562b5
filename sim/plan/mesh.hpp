#pragma once

#include <vector>

#include "sim/core/enum_array.hpp"
#include "sim/core/ids.hpp"
#include "sim/core/parallel.hpp"

namespace stagecraft {

/// The devices of a stage as a grid. Neighbors on the tensor axis are neighbors in the list of devices; then come
/// context, expert and data (Megatron-LM's order tp-cp-ep-dp).
struct Mesh {
  using Coordinates = EnumArray<Axis, int, 4>;

  std::vector<DeviceId> devices;
  Coordinates extent = {1, 1, 1, 1};  ///< The extents multiply to the number of devices.

  Coordinates at(int position) const;  ///< The coordinates of the device at this position of the list.
  /// Devices that differ in these coordinates alone are one group. Each device is in one group; groups come in the
  /// order of their first devices.
  std::vector<std::vector<DeviceId>> groups(AxisSet) const;
};

/// The grid of the dense layers: replicas x context x tensor.
Mesh dense_mesh(std::vector<DeviceId> devices, const Degrees&);
/// The grid of routed experts over the same devices: expert_replicas() x expert x expert_tensor.
Mesh expert_mesh(std::vector<DeviceId> devices, const Degrees&);

}  // namespace stagecraft
