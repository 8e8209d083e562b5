#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/cluster/phases.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft {

/// Devices in the order of their ranks: a group, the part of it on one node, or a ring.
using Members = std::vector<DeviceId>;

/// The members on each node. Nodes come in the order of their first members.
inline std::vector<Members> members_by_node(const DeviceGroup& group) {
  if (group.nodes.empty()) return {group.devices};
  std::map<int, std::size_t> index;
  std::vector<Members> nodes;
  for (std::size_t d = 0; d < group.devices.size(); ++d) {
    const auto [entry, inserted] = index.try_emplace(group.nodes[d], nodes.size());
    if (inserted) nodes.emplace_back();
    nodes[entry->second].push_back(group.devices[d]);
  }
  return nodes;
}

inline bool are_equally_large(const std::vector<Members>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const Members& n) { return n.size() == nodes.front().size(); });
}

/// What the algorithm of a collective writes its phases with. The group has at least two members.
class PhaseWriter {
 public:
  PhaseWriter(CollectiveKind kind, const CollectiveAlgorithm& algorithm, const DeviceGroup& group, std::uint64_t bytes)
      : kind_(kind), algorithm_(algorithm), group_(group), bytes_(static_cast<double>(bytes)) {}

  const Members& members() const { return group_.devices; }
  std::vector<Members> nodes() const { return members_by_node(group_); }
  double bytes() const { return bytes_; }  ///< The whole array, as phases_of() counts it.

  /// Throws InputError: the algorithm does not serve this kind of collective, or this group.
  [[noreturn]] void refuse(std::string_view reason) const {
    throw InputError(fmt::format("the {} algorithm cannot run {}: {}", algorithm_.name, name(kind_), reason),
                     "ring runs every kind of collective on every group");
  }

  /// Adds one phase, unless it has no routes. `bytes` go over each route, rounded to whole ones.
  void add(int latencies, double bytes, std::vector<RouteEnds> routes) {
    if (!routes.empty())
      phases_.push_back({latencies, static_cast<std::uint64_t>(std::llround(bytes)), std::move(routes)});
  }

  /// `passes` trips around each of several equally large rings at once. In every step of a trip, each of n members
  /// sends 1/n of `bytes` to the next one.
  void add_rings(const std::vector<Members>& rings, int passes, double bytes) {
    const int n = static_cast<int>(rings.front().size());
    if (n > 1) add(passes * (n - 1), ring_share(n, passes) * bytes, ring_routes(rings));
  }

  /// The whole array from the first to the last member of each of several equally long chains at once.
  void add_chains(const std::vector<Members>& chains) {
    std::vector<RouteEnds> routes;
    for (const Members& chain : chains)
      for (std::size_t i = 1; i < chain.size(); ++i) routes.push_back({chain[i - 1], chain[i]});
    add(static_cast<int>(chains.front().size()) - 1, bytes_, std::move(routes));
  }

  /// The routes from each member to the next one, and from the last to the first.
  static std::vector<RouteEnds> ring_routes(const std::vector<Members>& rings) {
    std::vector<RouteEnds> routes;
    for (const Members& ring : rings)
      for (std::size_t i = 0; i < ring.size(); ++i) routes.push_back({ring[i], ring[(i + 1) % ring.size()]});
    return routes;
  }

  std::vector<Phase> take() && { return std::move(phases_); }

 private:
  CollectiveKind kind_;
  const CollectiveAlgorithm& algorithm_;
  const DeviceGroup& group_;
  double bytes_;
  std::vector<Phase> phases_;
};

}  // namespace stagecraft
