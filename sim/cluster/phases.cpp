#include "sim/cluster/phases.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

using Ring = std::vector<DeviceId>;

/// The members of each node, in the order of their ranks; nodes in the order of their first members.
std::vector<Ring> by_node(const DeviceGroup& group) {
  if (group.nodes.empty()) return {group.devices};
  std::map<int, int> place;
  std::vector<Ring> nodes;
  for (std::size_t d = 0; d < group.devices.size(); ++d) {
    const auto [at, fresh] = place.try_emplace(group.nodes[d], static_cast<int>(nodes.size()));
    if (fresh) nodes.emplace_back();
    nodes[at->second].push_back(group.devices[d]);
  }
  return nodes;
}

bool equal_nodes(const std::vector<Ring>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const Ring& n) { return n.size() == nodes.front().size(); });
}

/// Devices with the same place in their nodes.
std::vector<Ring> across(const std::vector<Ring>& nodes) {
  std::vector<Ring> rings(nodes.front().size());
  for (const Ring& node : nodes)
    for (std::size_t i = 0; i < node.size(); ++i) rings[i].push_back(node[i]);
  return rings;
}

std::uint64_t whole(double bytes) { return static_cast<std::uint64_t>(std::llround(bytes)); }

/// Phases in the making. Phases without routes are left out.
class Writer {
 public:
  explicit Writer(std::uint64_t bytes) : bytes_(static_cast<double>(bytes)) {}

  double bytes() const { return bytes_; }

  void add(int latencies, double bytes, std::vector<RouteEnds> routes) {
    if (!routes.empty()) phases_.push_back({latencies, whole(bytes), std::move(routes)});
  }

  /// `passes` trips around rings of equally many members, each with a step of 1/n of the array to each other member.
  void rings(const std::vector<Ring>& rings, int passes, double bytes) {
    const int n = static_cast<int>(rings.front().size());
    if (n > 1) add(passes * (n - 1), ring_share(n, passes) * bytes, ring_routes(rings));
  }

  /// Parts for the member at distance d cross d routes of the ring: 1 + 2 + ... + (n-1) parts in all.
  void ring_of_parts(const Ring& ring) {
    const int n = static_cast<int>(ring.size());
    add(n - 1, (n - 1) / 2.0 * bytes_, ring_routes({ring}));
  }

  void chains(const std::vector<Ring>& chains) {
    std::vector<RouteEnds> routes;
    for (const Ring& chain : chains)
      for (std::size_t i = 1; i < chain.size(); ++i) routes.push_back({chain[i - 1], chain[i]});
    add(static_cast<int>(chains.front().size()) - 1, bytes_, std::move(routes));
  }

  /// A binomial tree: at the level of distance d, members 0..d-1 exchange with members d..2d-1.
  void tree(const Ring& members, bool up, bool down) {
    std::vector<std::vector<RouteEnds>> levels;
    for (std::size_t d = 1; d < members.size(); d *= 2) {
      auto& level = levels.emplace_back();
      for (std::size_t i = 0; i < d && i + d < members.size(); ++i) level.push_back({members[i], members[i + d]});
    }
    for (auto level = levels.rbegin(); up && level != levels.rend(); ++level) {
      std::vector<RouteEnds> routes = *level;
      for (RouteEnds& r : routes) std::swap(r.from, r.to);
      add(1, bytes_, std::move(routes));
    }
    for (auto level = levels.begin(); down && level != levels.end(); ++level) add(1, bytes_, *level);
  }

  /// Every member sends `bytes` to each other one. The steps between nodes at the same distance follow each other.
  void shifts(const std::vector<Ring>& nodes, double bytes) {
    const int count = static_cast<int>(nodes.size()), each = static_cast<int>(nodes.front().size());
    bool first = true;
    for (int a = 0; a < count; ++a)
      for (int b = a == 0 ? 1 : 0; b < each; ++b) {
        std::vector<RouteEnds> routes;
        for (int x = 0; x < count; ++x)
          for (int i = 0; i < each; ++i) routes.push_back({nodes[x][i], nodes[(x + a) % count][(i + b) % each]});
        add(first ? 1 : 0, bytes, std::move(routes));
        first = false;
      }
  }

  /// The same inside each of several rings at once.
  void shifts_inside(const std::vector<Ring>& rings, double bytes) {
    const int each = static_cast<int>(rings.front().size());
    for (int b = 1; b < each; ++b) {
      std::vector<RouteEnds> routes;
      for (const Ring& ring : rings)
        for (int i = 0; i < each; ++i) routes.push_back({ring[i], ring[(i + b) % each]});
      add(b == 1 ? 1 : 0, bytes, std::move(routes));
    }
  }

  /// One message of the root to each other member.
  void root_sends(const Ring& members) {
    for (std::size_t i = 1; i < members.size(); ++i) add(i == 1 ? 1 : 0, bytes_, {{members[0], members[i]}});
  }

  std::vector<Phase> take() { return std::move(phases_); }

 private:
  static std::vector<RouteEnds> ring_routes(const std::vector<Ring>& rings) {
    std::vector<RouteEnds> routes;
    for (const Ring& ring : rings)
      for (std::size_t i = 0; i < ring.size(); ++i) routes.push_back({ring[i], ring[(i + 1) % ring.size()]});
    return routes;
  }

  double bytes_;
  std::vector<Phase> phases_;
};

[[noreturn]] void refuse(CollectiveKind kind, CollectiveAlgorithm algorithm, const std::string& why) {
  throw InputError(fmt::format("the {} algorithm cannot run {}: {}", name(algorithm), name(kind), why),
                   "ring runs every kind of collective on every group");
}

void write_ring(CollectiveKind kind, const Ring& members, Writer& w) {
  switch (kind) {
    case CollectiveKind::AllReduce:
      return w.rings({members}, 2, w.bytes());
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllGather:
      return w.rings({members}, 1, w.bytes());
    case CollectiveKind::AllToAll:
      return w.ring_of_parts(members);
    case CollectiveKind::Broadcast:
      return w.chains({members});
  }
}

void write_hierarchical(CollectiveKind kind, const std::vector<Ring>& nodes, Writer& w) {
  const std::vector<Ring> columns = across(nodes);
  const double each = static_cast<double>(columns.size()), count = static_cast<double>(nodes.size());
  switch (kind) {
    case CollectiveKind::AllReduce:
      w.rings(nodes, 1, w.bytes());
      w.rings(columns, 2, w.bytes() / each);
      return w.rings(nodes, 1, w.bytes());
    case CollectiveKind::ReduceScatter:
      w.rings(nodes, 1, w.bytes());
      return w.rings(columns, 1, w.bytes() / each);
    case CollectiveKind::AllGather:
      w.rings(columns, 1, w.bytes() / each);
      return w.rings(nodes, 1, w.bytes());
    case CollectiveKind::AllToAll:
      w.shifts_inside(nodes, w.bytes() / each);
      return w.shifts_inside(columns, w.bytes() / count);
    case CollectiveKind::Broadcast:
      w.chains({columns.front()});
      return w.chains(nodes);
  }
}

void write_direct(CollectiveKind kind, const Ring& members, const std::vector<Ring>& nodes, Writer& w) {
  const std::vector<Ring> one = {members};
  const std::vector<Ring>& steps = equal_nodes(nodes) ? nodes : one;
  const double part = w.bytes() / static_cast<double>(members.size());
  if (kind == CollectiveKind::Broadcast) return w.root_sends(members);
  w.shifts(steps, part);
  if (kind == CollectiveKind::AllReduce) w.shifts(steps, part);
}

}  // namespace

DeviceGroup group_of(std::vector<DeviceId> devices, const Cluster& cluster) {
  DeviceGroup group{std::move(devices)};
  std::map<std::string, int> known;
  int nodes = 0;
  for (const DeviceId d : group.devices) {
    const std::string& host = cluster.devices[d].host;
    const auto [at, fresh] = known.try_emplace(host, nodes);
    group.nodes.push_back(fresh || host.empty() ? nodes++ : at->second);
  }
  return group;
}

const char* name(CollectiveAlgorithm algorithm) {
  constexpr const char* kNames[] = {"ring", "tree", "hierarchical", "direct", "NVLS"};
  return kNames[static_cast<int>(algorithm)];
}

std::vector<Phase> phases_of(CollectiveKind kind, CollectiveAlgorithm algorithm, const DeviceGroup& group,
                             std::uint64_t bytes) {
  if (algorithm == CollectiveAlgorithm::Nvls) refuse(kind, algorithm, "its times on NVSwitch are not modeled yet");
  if (group.devices.size() < 2) return {};
  const std::vector<Ring> nodes = by_node(group);
  Writer w(bytes);
  switch (algorithm) {
    case CollectiveAlgorithm::Ring:
      write_ring(kind, group.devices, w);
      break;
    case CollectiveAlgorithm::Tree:
      if (kind != CollectiveKind::AllReduce && kind != CollectiveKind::Broadcast)
        refuse(kind, algorithm, "a tree moves whole arrays, for all_reduce and broadcast");
      w.tree(group.devices, kind == CollectiveKind::AllReduce, true);
      break;
    case CollectiveAlgorithm::Hierarchical:
      if (!equal_nodes(nodes)) refuse(kind, algorithm, "the nodes have different numbers of members");
      write_hierarchical(kind, nodes, w);
      break;
    case CollectiveAlgorithm::Direct:
      write_direct(kind, group.devices, nodes, w);
      break;
    case CollectiveAlgorithm::Nvls:
      break;
  }
  return w.take();
}

CollectiveAlgorithm choose_algorithm(CollectiveKind kind, const DeviceGroup& group) {
  if (kind == CollectiveKind::AllToAll) return CollectiveAlgorithm::Direct;
  const std::vector<Ring> nodes = by_node(group);
  const bool levels = nodes.size() > 1 && nodes.front().size() > 1 && equal_nodes(nodes);
  return levels ? CollectiveAlgorithm::Hierarchical : CollectiveAlgorithm::Ring;
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
