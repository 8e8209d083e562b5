#include "sim/cluster/cluster.hpp"

#include <fmt/core.h>

namespace stagecraft {

std::string memory_text(Bytes total, Bytes reserved) {
  return reserved.value > 0 ? fmt::format("{} ({} reserved)", to_text(total), to_text(reserved)) : to_text(total);
}

std::string usable_text(Bytes usable, Bytes reserved) {
  return (reserved.value > 0 ? to_text(usable) + " of " : "") + memory_text(usable + reserved, reserved);
}

std::string Cluster::vertex_name(VertexId v) const {
  const DeviceId device{v.value};
  return devices.contains(device) ? devices[device].name : switches.at(v.value - devices.size());
}

std::optional<DeviceId> Cluster::find_device(const std::string& device_name) const {
  for (const DeviceId d : devices.ids())
    if (devices[d].name == device_name) return d;
  return std::nullopt;
}

}  // namespace stagecraft
