// Every link costs one hop, and hops come first in the order of routes, so Dijkstra's algorithm becomes a breadth-first
// search over the switches, level by level. Devices never forward: the search leaves the source by its own links, walks
// links between switches only, and is closed by the target's own links. Nothing walks the devices of a large switch.
// Cost: O(links between switches), O(1) on a star of any size.

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/cluster/cluster.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

constexpr int kUnreached = std::numeric_limits<int>::max();

/// The best way found to a switch: how it was entered, and at what cost.
struct Label {
  int level = kUnreached;
  double attoseconds = 0;  ///< Time per byte summed over the links.
  LinkId link;
  VertexId from;
};

// Whole attoseconds add up to the same number in any order (exact below 2^53), so ties are ties both ways round.
double time_per_byte(const Link& link) { return std::nearbyint(1e18 / link.bandwidth.value); }

class Search {
 public:
  Search(const Cluster& cluster, VertexId source)
      : cluster_(&cluster), source_(source), labels_(cluster.switches.size()) {}

  const Label& at(VertexId v) const { return labels_[index(v)]; }

  /// Offers the way to `to` over `link`; true when `to` was not reached before.
  bool offer(const Label& offered, VertexId to) {
    Label& known = labels_[index(to)];
    if (known.level < offered.level) return false;
    const bool fresh = known.level == kUnreached;
    if (fresh || before(offered, known)) known = offered;
    return fresh;
  }

  Label extend(VertexId from, LinkId link) const {
    const Label base = from == source_ ? Label{0, 0, {}, {}} : at(from);
    return {base.level + 1, base.attoseconds + time_per_byte(cluster_->links[static_cast<std::size_t>(link)]), link,
            from};
  }

  bool before(const Label& a, const Label& b) const {
    if (a.level != b.level) return a.level < b.level;
    if (a.attoseconds != b.attoseconds) return a.attoseconds < b.attoseconds;
    return links_to(a) < links_to(b);
  }

  /// The vertices that a route ending with `last` leaves, source first, with the link taken from each.
  std::vector<std::pair<VertexId, LinkId>> steps(const Label& last) const {
    std::vector<std::pair<VertexId, LinkId>> result{{last.from, last.link}};
    while (result.back().first != source_)
      result.emplace_back(at(result.back().first).from, at(result.back().first).link);
    std::reverse(result.begin(), result.end());
    return result;
  }

 private:
  std::size_t index(VertexId v) const { return static_cast<std::size_t>(v) - cluster_->devices.size(); }

  std::vector<std::int32_t> links_to(const Label& last) const {
    std::vector<std::int32_t> ids;
    for (const auto& step : steps(last)) ids.push_back(step.second);
    return ids;
  }

  const Cluster* cluster_;
  VertexId source_;
  std::vector<Label> labels_;
};

Route make_route(const Cluster& cluster, const Search& search, const Label& last) {
  Route route;
  route.bandwidth.value = std::numeric_limits<double>::infinity();
  for (const auto& step : search.steps(last)) {
    const Link& link = cluster.links[static_cast<std::size_t>(step.second)];
    // A shared medium has one direction: every station sends on the same one.
    route.hops.push_back({step.second, link.ends.size() > 2 || link.ends.front() == step.first});
    route.latency += link.latency;
    route.bandwidth = std::min(route.bandwidth, link.bandwidth);
  }
  return route;
}

}  // namespace

Router::Router(const Cluster& cluster)
    : cluster_(&cluster),
      attached_(cluster.devices.size() + cluster.switches.size()),
      trunks_(attached_.size()),
      switch_ends_(cluster.links.size()) {
  for (std::size_t i = 0; i < cluster.links.size(); ++i) {
    const Link& link = cluster.links[i];
    const LinkId id{static_cast<std::int64_t>(i)};
    for (VertexId end : link.ends) {
      STAGECRAFT_CHECK(end.valid() && static_cast<std::size_t>(end) < attached_.size());
      attached_[static_cast<std::size_t>(end)].push_back(id);
      if (static_cast<std::size_t>(end) >= cluster.devices.size()) switch_ends_[i].push_back(end);
    }
    for (VertexId end : link.ends) {
      const bool is_switch = static_cast<std::size_t>(end) >= cluster.devices.size();
      if (switch_ends_[i].size() > (is_switch ? 1U : 0U)) trunks_[static_cast<std::size_t>(end)].push_back(id);
    }
  }
}

std::optional<Route> Router::route(DeviceId from, DeviceId to) const {
  const VertexId source = cluster_->vertex(from), target = cluster_->vertex(to);
  if (source == target) return Route{{}, {}, {std::numeric_limits<double>::infinity()}};
  Search search(*cluster_, source);
  std::optional<Label> best;
  const auto close = [&](VertexId last, LinkId link) {
    const Label label = search.extend(last, link);
    if (!best || search.before(label, *best)) best = label;
  };

  for (LinkId link : attached_[static_cast<std::size_t>(target)]) {
    const std::vector<VertexId>& ends = cluster_->links[static_cast<std::size_t>(link)].ends;
    if (std::find(ends.begin(), ends.end(), source) != ends.end()) close(source, link);
  }
  std::vector<VertexId> frontier{source}, next;
  for (int level = 0; !best && !frontier.empty(); ++level) {
    next.clear();
    for (VertexId vertex : frontier)
      for (LinkId link : trunks_[static_cast<std::size_t>(vertex)])
        for (VertexId end : switch_ends_[static_cast<std::size_t>(link)])
          if (end != vertex && search.offer(search.extend(vertex, link), end)) next.push_back(end);
    frontier.swap(next);
    for (LinkId link : trunks_[static_cast<std::size_t>(target)])
      for (VertexId end : switch_ends_[static_cast<std::size_t>(link)])
        if (search.at(end).level == level + 1) close(end, link);
  }
  if (!best) return std::nullopt;
  return make_route(*cluster_, search, *best);
}

Route Router::require(DeviceId from, DeviceId to) const {
  if (auto found = route(from, to)) return *std::move(found);
  throw Infeasible("route",
                   "no path leads from '" + cluster_->vertex_name(cluster_->vertex(from)) + "' to '" +
                       cluster_->vertex_name(cluster_->vertex(to)) + "'",
                   "devices do not forward: join them by a link, or both to the same switch");
}

}  // namespace stagecraft
