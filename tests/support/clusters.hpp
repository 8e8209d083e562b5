#pragma once

#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"

namespace stagecraft::test {

/// `devices` devices and `switches` switches without a cable.
inline Cluster bare_cluster(int devices, int switches = 0) {
  Cluster cluster;
  cluster.name = "by hand";
  cluster.types.resize(1);
  for (int d = 0; d < devices; ++d)
    cluster.devices.push_back({"d" + std::to_string(d), DeviceTypeId{0}, "h" + std::to_string(d)});
  for (int s = 0; s < switches; ++s) cluster.switches.push_back("s" + std::to_string(s));
  return cluster;
}

/// One type for each device.
inline Cluster devices_with(const std::vector<double>& speeds) {
  Cluster cluster = bare_cluster(static_cast<int>(speeds.size()));
  cluster.types.clear();
  for (const DeviceId d : cluster.devices.ids()) {
    cluster.devices[d].type = cluster.types.push_back({});
    cluster.types.back().speed = speeds[d.value];
  }
  return cluster;
}

/// Ends are vertices: devices first, then switches.
inline void connect(Cluster& cluster, const std::vector<int>& ends, double bandwidth, double latency,
                    Duplex duplex = Duplex::Full) {
  Link link;
  link.name = "l" + std::to_string(cluster.links.size());
  link.bandwidth = Bandwidth{bandwidth};
  link.latency = Seconds{latency};
  link.duplex = duplex;
  for (const int end : ends) link.ends.push_back(VertexId{end});
  cluster.links.push_back(std::move(link));
}

/// One cable from every device to one switch.
inline Cluster star(int devices, double bandwidth, double latency, Duplex duplex = Duplex::Full) {
  Cluster cluster = bare_cluster(devices, 1);
  for (int d = 0; d < devices; ++d) connect(cluster, {d, devices}, bandwidth, latency, duplex);
  return cluster;
}

}  // namespace stagecraft::test
