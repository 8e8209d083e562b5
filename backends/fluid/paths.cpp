#include "backends/fluid/paths.hpp"

#include <algorithm>

namespace stagecraft::fluid {

Paths paths_of(const Cluster& cluster, std::span<const Route> routes) {
  Paths paths;
  for (const Link& link : cluster.links) paths.capacity.insert(paths.capacity.end(), 2, link.bandwidth.value);
  paths.first.push_back(0);
  for (const Route& route : routes) {
    paths.alone.push_back(route.bandwidth.value);
    for (const Hop& hop : route.hops) {
      const Duplex duplex = cluster.links[hop.link].duplex;
      if (duplex == Duplex::Unshared) continue;
      paths.crossed.push_back(2 * hop.link + (duplex == Duplex::Full && !hop.forward ? 1 : 0));
    }
    paths.first.push_back(static_cast<std::uint32_t>(paths.crossed.size()));
  }
  return paths;
}

void set_bandwidths(Paths& paths, std::span<const double> bandwidths, std::span<const Route> routes) {
  for (std::size_t l = 0; l < bandwidths.size(); ++l) paths.capacity[2 * l] = paths.capacity[2 * l + 1] = bandwidths[l];
  for (std::size_t r = 0; r < routes.size(); ++r) {
    if (routes[r].hops.empty()) continue;
    double least = bandwidths[routes[r].hops.front().link];
    for (const Hop& hop : routes[r].hops) least = std::min(least, bandwidths[hop.link]);
    paths.alone[r] = least;
  }
}

}  // namespace stagecraft::fluid
