// Reduces the routes that a Program needs to a flat star around one switch, which SimGrid builds in linear time.

#include "backends/simgrid/engine/layout.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "sim/core/numbers.hpp"

namespace stagecraft::sg {
namespace {

std::vector<Hop> backwards(std::span<const Hop> hops) {
  std::vector<Hop> back(hops.rbegin(), hops.rend());
  for (Hop& hop : back) hop.forward = !hop.forward;
  return back;
}

/// The vertex between two adjacent hops. Not valid between two shared media: their many ends do not determine it.
VertexId between(const Cluster& cluster, const Hop& before, const Hop& after) {
  const Link& first = cluster.links[before.link];
  const Link& second = cluster.links[after.link];
  if (first.ends.size() == 2) return first.ends[before.forward ? 1 : 0];
  if (second.ends.size() == 2) return second.ends[after.forward ? 0 : 1];
  return VertexId{};
}

/// The switch that most routes pass; the first of equals. Not valid when no route passes any.
VertexId busiest_switch(const Cluster& cluster, std::span<const Route> routes) {
  std::vector<int> passes(cluster.devices.size() + cluster.switches.size(), 0);
  for (const Route& route : routes)
    for (std::size_t i = 1; i < route.hops.size(); ++i) {
      const VertexId place = between(cluster, route.hops[i - 1], route.hops[i]);
      if (place.valid()) ++passes[place.value];
    }
  const auto it = std::max_element(passes.begin(), passes.end());
  if (it == passes.end() || *it == 0) return VertexId{};
  return VertexId{it - passes.begin()};
}

/// Each device's way to `core`, taken from the first route that goes through it.
IdVector<DeviceId, std::vector<Hop>> ways_up(const Program& program, const Cluster& cluster,
                                             std::span<const Route> routes, VertexId core) {
  IdVector<DeviceId, std::vector<Hop>> up(cluster.devices.size());
  for (std::size_t r = 0; r < routes.size(); ++r) {
    const std::span<const Hop> hops = routes[r].hops;
    for (std::size_t i = 1; i < hops.size(); ++i) {
      if (between(cluster, hops[i - 1], hops[i]) != core || !core.valid()) continue;  // Never a way to host memory.
      auto& from = up[program.routes[r].from];
      auto& to = up[program.routes[r].to];
      if (from.empty()) from.assign(hops.begin(), hops.begin() + static_cast<std::ptrdiff_t>(i));
      if (to.empty()) to = backwards(hops.subspan(i));
      break;
    }
  }
  return up;
}

bool is_up_and_down(const std::vector<Hop>& hops, const std::vector<Hop>& up, const std::vector<Hop>& other_up) {
  if (up.empty() || other_up.empty() || hops.size() != up.size() + other_up.size()) return false;
  const std::vector<Hop> down = backwards(other_up);
  return std::equal(up.begin(), up.end(), hops.begin()) &&
         std::equal(down.begin(), down.end(), hops.begin() + static_cast<std::ptrdiff_t>(up.size()));
}

}  // namespace

Layout build_layout(const Program& program, const Cluster& cluster, std::span<const Route> all_routes) {
  const std::span<const Route> routes = all_routes.first(program.routes.size());
  IdVector<DeviceId, std::vector<Hop>> up = ways_up(program, cluster, routes, busiest_switch(cluster, routes));
  IdVector<DeviceId, char> device_used(cluster.devices.size(), 0);
  IdVector<LinkId, char> link_used(cluster.links.size(), 0);
  std::set<std::pair<DeviceId, DeviceId>> leaving;
  Layout layout;
  for (std::size_t r = 0; r < routes.size(); ++r) {
    if (routes[r].hops.empty()) continue;
    const auto [from, to] = program.routes[r];
    for (const DeviceId end : {from, to})
      if (end.valid()) device_used[end] = 1;
    for (const Hop& hop : routes[r].hops) link_used[hop.link] = 1;
    const bool has_window = routes[r].max_rate.value < kInfinity;
    const bool leaves_star = has_window || !from.valid() || !to.valid();
    if (!leaves_star && is_up_and_down(routes[r].hops, up[from], up[to])) continue;
    if (leaving.insert({from, to}).second) layout.exceptions.push_back(static_cast<std::int32_t>(r));
  }
  for (const DeviceId d : cluster.devices.ids()) {
    const LinkId memory = cluster.devices[d].memory;
    if (program.traffic.empty() || !memory.valid()) continue;
    layout.sharers.push_back(d);
    link_used[memory] = 1;
  }
  for (const DeviceId d : device_used.ids())
    if (device_used[d]) layout.hosts.push_back({d, std::move(up[d])});
  for (const LinkId l : link_used.ids())
    if (link_used[l]) layout.links.push_back(l);
  return layout;
}

}  // namespace stagecraft::sg
