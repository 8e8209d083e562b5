// Chooses the algorithm of a collective and divides it into phases, whose messages simulators put on the links; also
// the time of phases on idle links.

#include "sim/cluster/phases.hpp"

#include <algorithm>
#include <utility>

#include "sim/cluster/collective_algorithms/phase_writer.hpp"

namespace stagecraft {

DeviceGroup group_of(std::vector<DeviceId> devices, const Cluster& cluster) {
  std::vector<int> nodes = nodes_of(devices, cluster);
  return {std::move(devices), std::move(nodes)};
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

const CollectiveAlgorithm& choose_algorithm(CollectiveKind kind, const std::vector<DeviceGroup>& groups) {
  const CollectiveAlgorithm& first = choose_algorithm(kind, groups.front());
  const std::size_t nodes = members_by_node(groups.front()).size();
  for (const DeviceGroup& group : groups)
    if (&choose_algorithm(kind, group) != &first || members_by_node(group).size() != nodes)
      return kind == CollectiveKind::AllToAll ? first : collective_algorithms::ring;
  return first;
}

std::vector<Phase> phases_of(CollectiveKind kind, const CollectiveAlgorithm& algorithm,
                             const std::vector<DeviceGroup>& groups, std::uint64_t bytes) {
  std::vector<Phase> together = phases_of(kind, algorithm, groups.front(), bytes);
  for (std::size_t g = 1; g < groups.size(); ++g) {
    const std::vector<Phase> phases = phases_of(kind, algorithm, groups[g], bytes);
    STAGECRAFT_CHECK(phases.size() == together.size());
    for (std::size_t i = 0; i < phases.size(); ++i) {
      STAGECRAFT_CHECK(phases[i].bytes == together[i].bytes && phases[i].latencies == together[i].latencies);
      together[i].routes.insert(together[i].routes.end(), phases[i].routes.begin(), phases[i].routes.end());
    }
  }
  return together;
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
