#include "sim/cluster/phases.hpp"

#include <algorithm>
#include <map>

#include "sim/cluster/collective_algorithms/phase_writer.hpp"

namespace stagecraft {

DeviceGroup group_of(std::vector<DeviceId> devices, const Cluster& cluster) {
  DeviceGroup group{std::move(devices)};
  std::map<std::string, int> node_of_host;
  int nodes = 0;
  for (const DeviceId d : group.devices) {
    const std::string& host = cluster.devices[d].host;
    const auto [at, fresh] = node_of_host.try_emplace(host, nodes);
    group.nodes.push_back(fresh || host.empty() ? nodes++ : at->second);
  }
  return group;
}

std::vector<Phase> phases_of(CollectiveKind kind, const CollectiveAlgorithm& algorithm, const DeviceGroup& group,
                             std::uint64_t bytes) {
  if (group.devices.size() < 2) return {};
  PhaseWriter writer(kind, algorithm, group, bytes);
  algorithm.write(kind, writer);
  return std::move(writer).take();
}

const CollectiveAlgorithm& choose_algorithm(CollectiveKind kind, const DeviceGroup& group) {
  if (kind == CollectiveKind::AllToAll) return collective_algorithms::direct;
  const std::vector<Members> nodes = members_by_node(group);
  const bool has_levels = nodes.size() > 1 && nodes.front().size() > 1 && are_equally_large(nodes);
  return has_levels ? collective_algorithms::hierarchical : collective_algorithms::ring;
}

Seconds time_of(const Phase& phase, const LinkTable& links) {
  Seconds latency, carrying;
  const Bytes bytes{static_cast<double>(phase.bytes)};
  for (const RouteEnds& route : phase.routes) {
    const LinkRate rate = links.link(route.from, route.to);
    latency = std::max(latency, rate.latency);
    carrying = std::max(carrying, bytes / rate.bandwidth);
  }
  return phase.latencies * latency + carrying;
}

Seconds time_of(const std::vector<Phase>& phases, const LinkTable& links) {
  Seconds sum;
  for (const Phase& phase : phases) sum += time_of(phase, links);
  return sum;
}

}  // namespace stagecraft
