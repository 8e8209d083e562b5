// Divides a collective whose devices form several groups into one for each group; unfold.cpp calls it.

#include "sim/program/collective_groups.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "sim/core/disjoint_sets.hpp"

namespace stagecraft {
namespace {

std::span<const RouteEnds> routes_of(const Program& program, const CollectivePhase& phase) {
  return std::span(program.routes).subspan(phase.first_route, phase.routes);
}

std::int32_t add_part(const Program& from, const CollectiveCall& c, int root, DisjointSets& joined, Program& to) {
  CollectiveShape shape = from.shape(c);
  shape.first_phase = static_cast<std::int32_t>(to.phases.size());
  shape.phases = 0;
  for (CollectivePhase phase : from.phases_of(c)) {
    const std::span<const RouteEnds> routes = routes_of(from, phase);
    phase.first_route = static_cast<std::int32_t>(to.routes.size());
    for (const RouteEnds& route : routes)
      if (joined.root(route.from.value) == root) to.routes.push_back(route);
    phase.routes = static_cast<std::int32_t>(to.routes.size()) - phase.first_route;
    if (phase.routes == 0) continue;
    to.phases.push_back(phase);
    ++shape.phases;
  }
  to.collective_shapes.push_back(shape);
  return static_cast<std::int32_t>(std::ssize(to.collective_shapes)) - 1;
}

}  // namespace

std::vector<CollectiveGroup> split_by_groups(const Program& from, const CollectiveCall& c,
                                             const std::vector<DeviceId>& devices, Program& to) {
  int count = 0;
  for (const DeviceId d : devices) count = std::max(count, d.value + 1);
  DisjointSets joined(count);
  for (const CollectivePhase& phase : from.phases_of(c))
    for (const RouteEnds& route : routes_of(from, phase)) joined.join(route.from.value, route.to.value);
  std::vector<CollectiveGroup> groups;
  std::map<int, std::size_t> group_of;  // By the root of its devices.
  for (const DeviceId d : devices) {
    const auto [group, is_new] = group_of.try_emplace(joined.root(d.value), groups.size());
    if (is_new) groups.emplace_back();
    groups[group->second].devices.push_back(d);
  }
  for (const auto& [root, index] : group_of) groups[index].shape = add_part(from, c, root, joined, to);
  return groups;
}

}  // namespace stagecraft
