// Look-ups in a Cluster (names of vertices, a device by its name, the node of each device), and memory sizes as text.

#include "sim/cluster/cluster.hpp"

#include <algorithm>
#include <map>
#include <utility>

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

bool Cluster::has_one_queue() const {
  return std::any_of(links.begin(), links.end(), [](const Link& link) { return link.one_queue; });
}

std::optional<DeviceId> Cluster::find_device(const std::string& device_name) const {
  for (const DeviceId d : devices.ids())
    if (devices[d].name == device_name) return d;
  return std::nullopt;
}

bool Cluster::on_one_node(DeviceId a, DeviceId b) const {
  return a == b || (!devices[a].host.empty() && devices[a].host == devices[b].host);
}

std::vector<int> nodes_of(const std::vector<DeviceId>& devices, const Cluster& cluster) {
  std::map<std::pair<std::string, DeviceId>, int> number;  // By the host, or by the device that has none.
  std::vector<int> nodes;
  for (const DeviceId d : devices) {
    const std::string& host = cluster.devices[d].host;
    const auto next = static_cast<int>(number.size());
    nodes.push_back(number.try_emplace({host, host.empty() ? d : DeviceId{}}, next).first->second);
  }
  return nodes;
}

std::vector<int> node_of(const Cluster& cluster) {
  std::vector<DeviceId> devices;
  for (const DeviceId d : cluster.devices.ids()) devices.push_back(d);
  return nodes_of(devices, cluster);
}

int most_on_a_node(const std::vector<DeviceId>& devices, const Cluster& cluster) {
  std::map<int, int> members;
  int fullest = 0;
  for (const int node : nodes_of(devices, cluster)) fullest = std::max(fullest, ++members[node]);
  return fullest;
}

}  // namespace stagecraft
