// The routes that a Program needs in a cluster, and to memory that devices share, checked for the network models: every
// link has sensible numbers, every pair is connected.

#include "backends/des/routes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::des {
namespace {

Diagnostic problem(const Link& link, const std::string& what, double value, std::string help) {
  Diagnostic diagnostic;
  diagnostic.path = "cluster.links." + link.name;
  diagnostic.message = what + " is " + shortest(value);
  diagnostic.help = std::move(help);
  diagnostic.code = "link-value";
  return diagnostic;
}

void check_link(const Link& link, std::vector<Diagnostic>& problems) {
  const double bandwidth = link.bandwidth.value, latency = link.latency.value;
  if (!(bandwidth > 0) || !std::isfinite(bandwidth))
    problems.push_back(
        problem(link, "bandwidth", bandwidth, "a link that is used needs a finite bandwidth above zero"));
  if (!(latency >= 0) || !std::isfinite(latency))
    problems.push_back(problem(link, "latency", latency, "a link that is used needs a finite latency, zero or more"));
}

/// Each link of shared memory once, by the first device.
std::vector<LinkId> memories_of(const Cluster& cluster) {
  std::vector<LinkId> links;
  for (const Device& d : cluster.devices)
    if (d.memory.valid() && std::find(links.begin(), links.end(), d.memory) == links.end()) links.push_back(d.memory);
  return links;
}

/// How far an op is would depend on two rates that change at different times.
void refuse_changes(const Cluster& cluster) {
  for (const Change& change : cluster.changes)
    for (const DeviceId d : change.devices)
      if (const Device& device = cluster.devices[d]; device.memory.valid())
        throw InputError(
            fmt::format("'{}' shares its memory with others, and devices that do cannot change their speed",
                        device.name),
            "leave the change of the device out; jitter and changes of links are possible");
}

}  // namespace

std::vector<std::int32_t> memory_routes(const Program& program, const Cluster& cluster) {
  const std::vector<LinkId> links = memories_of(cluster);
  std::vector<std::int32_t> routes;
  for (const Device& d : cluster.devices)
    routes.push_back(d.memory.valid() ? static_cast<std::int32_t>(program.routes.size()) +
                                            static_cast<std::int32_t>(std::find(links.begin(), links.end(), d.memory) -
                                                                      links.begin())
                                      : -1);
  return routes;
}

std::vector<Route> routes_of(const Program& program, const Cluster& cluster) {
  refuse_changes(cluster);
  const Router router(cluster);
  std::vector<Route> routes;
  routes.reserve(program.routes.size());
  IdVector<LinkId, char> checked(cluster.links.size(), 0);
  std::vector<Diagnostic> problems;
  for (const RouteEnds& ends : program.routes)
    routes.push_back(ends.from == ends.to ? Route{} : router.require(ends.from, ends.to));
  for (const LinkId link : memories_of(cluster)) routes.push_back({{{link, true}}, {}, cluster.links[link].bandwidth});
  for (const Route& route : routes) {
    for (const Hop& hop : route.hops) {
      const LinkId link = hop.link;
      if (!checked[link]) check_link(cluster.links[link], problems);
      checked[link] = 1;
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return routes;
}

}  // namespace stagecraft::des
