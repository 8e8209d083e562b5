#include "sim/cluster/cluster.hpp"

#include <fmt/format.h>

namespace stagecraft {

std::string memory_text(Bytes all, Bytes reserved) {
  return reserved.value > 0 ? fmt::format("{} ({} reserved)", to_text(all), to_text(reserved)) : to_text(all);
}

std::string usable_text(Bytes usable, Bytes reserved) {
  return (reserved.value > 0 ? to_text(usable) + " of " : "") + memory_text(usable + reserved, reserved);
}

std::string Cluster::vertex_name(VertexId v) const {
  const std::size_t index = v;
  return index < devices.size() ? devices[index].name : switches.at(index - devices.size());
}

std::optional<DeviceId> Cluster::find_device(const std::string& device_name) const {
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i].name == device_name) return DeviceId{static_cast<std::int64_t>(i)};
  return std::nullopt;
}

}  // namespace stagecraft
