#pragma once

#include <vector>

#include "sim/core/enum_array.hpp"
#include "sim/core/ids.hpp"
#include "sim/core/parallel.hpp"

namespace stagecraft {

/// The devices of a stage as a grid. Neighbors on the tensor axis are neighbors in the list of devices; then come
/// context, expert and data.
struct Mesh {
  using Coordinates = EnumArray<Axis, int, 4>;

  std::vector<DeviceId> devices;
  Coordinates extent = {1, 1, 1, 1};  ///< The extents multiply to the number of devices.

  Coordinates at(int position) const;  ///< The coordinates of the device at this position of the list.
  /// Devices that differ in these coordinates alone are one group. Each device is in one group; groups come in the
  /// order of their first devices.
  std::vector<std::vector<DeviceId>> groups(AxisSet) const;
};

/// The grid of the dense layers: replicas x context x tensor. `devices` belong to the stage and ascend by rank; the
/// order of ranks says where each belongs.
Mesh dense_mesh(const std::vector<DeviceId>& devices, const Degrees&);
/// The grid of routed experts over the same devices: expert_replicas() x expert x expert_tensor.
Mesh expert_mesh(const std::vector<DeviceId>& devices, const Degrees&);

/// The positions, in a list of devices, of those with each pipeline rank.
std::vector<std::vector<int>> positions_of_ranks(const Degrees&);

}  // namespace stagecraft
