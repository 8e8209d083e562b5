#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/cluster/generator.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::test {

inline Cluster make_cluster(const std::string& generator, const std::string& yaml) {
  const TopologyGenerator& def = get_from(topology_generators::catalog(), "generator", generator);
  return def.build(checked(yaml, *def.fields));
}

/// The messages of what is wrong with a description.
inline std::string wrong_cluster(const std::string& generator, const std::string& yaml) {
  return input_error_of([&] { make_cluster(generator, yaml); });
}

/// The places that a route visits, if each link starts where the one before has ended and only switches are passed.
/// Empty when it does not lead from the one to the other.
inline std::vector<VertexId> places_of(const Cluster& cluster, const Route& route, DeviceId from, DeviceId to) {
  std::vector<VertexId> places{cluster.vertex(from)};
  for (const Hop& hop : route.hops) {
    const Link& link = cluster.links[hop.link];
    if (link.ends.size() != 2 || places.back() != link.ends[hop.forward ? 0 : 1]) return {};
    places.push_back(link.ends[hop.forward ? 1 : 0]);
    if (places.size() <= route.hops.size() && cluster.devices.contains(DeviceId{places.back().value})) return {};
  }
  return places.back() == cluster.vertex(to) ? places : std::vector<VertexId>{};
}

/// The most routes that share one direction of one link when every device d sends to target(d).
template <class Target>
int busiest(const Cluster& cluster, Target target) {
  const Router router(cluster);
  std::vector<int> load(2 * cluster.links.size());
  for (const DeviceId d : cluster.devices.ids())
    for (const Hop& hop : router.require(d, DeviceId{target(d.value)}).hops)
      ++load[2 * hop.link.value + (hop.forward ? 1 : 0)];
  return *std::max_element(load.begin(), load.end());
}

}  // namespace stagecraft::test
