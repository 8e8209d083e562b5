#pragma once

#include <vector>

#include "backends/world.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::real {

/// Which process owns which device: devices with work are dealt in blocks of neighbors, as equal as can be.
class DevicePlacement {
 public:
  /// InputError when there are more processes than such devices.
  DevicePlacement(const Program&, World);

  int owner(DeviceId d) const { return owner_[d]; }  ///< -1: it has nothing to do.
  bool here(DeviceId d) const { return owner(d) == world_.rank; }
  World world() const { return world_; }

 private:
  World world_;
  IdVector<DeviceId, int> owner_;
};

}  // namespace stagecraft::real
