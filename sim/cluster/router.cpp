// Links have small whole lengths, mostly one, and lengths come first in the order of routes, so Dijkstra's algorithm
// becomes a search over the switches by rising length, from the target backwards until the source's own links close it.
// Then the route is read forwards over links that lead on as well as any: the first of them, or the one whose turn it
// is for this target. Devices never forward, and nothing walks the devices of a large switch. Cost: O(links of switches
// no farther from the target than the source is), O(1) on a star of any size.
//
// Turns: of k links that lead on, a target with the number n takes link n mod k, and n / k counts from there on. On a
// fat tree whose devices are numbered along its leaves this is D-mod-k (Zahavi, Fat-tree routing and node ordering
// providing contention free traffic for MPI global collectives, JPDC 2012): shifts cross it without a meeting.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/cluster/cluster.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

/// What is left from a place to the target.
struct Rest {
  int length = std::numeric_limits<int>::max();
  double attoseconds = 0;  ///< Time per byte summed over the links.

  bool known() const { return length != std::numeric_limits<int>::max(); }
  friend auto operator<=>(const Rest&, const Rest&) = default;
};

constexpr Rest kThere{0, 0};

// Whole attoseconds add up to the same number in any order (exact below 2^53), so ties are ties both ways round. Who
// uses a route refuses links whose bandwidth makes no sense.
Rest before(const Link& link, const Rest& rest) {
  const double time = 1e18 / link.bandwidth.value;
  return {rest.length + link.length, rest.attoseconds + (std::isfinite(time) ? std::nearbyint(time) : 0)};
}

template <class T>
bool contains(const std::vector<T>& all, T one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

/// The ways from one device to another.
class Router::Search {
 public:
  Search(const Router& router, VertexId source, VertexId target)
      : router_(router), source_(source), target_(target), rest_(router.cluster_->switches.size()) {}

  /// Learns what is left from the source and from every switch that is nearer; false when no path leads from there.
  bool find() {
    for (LinkId id : router_.attached_[index(target_)])
      if (contains(link(id).ends, source_)) rest_of_source_ = std::min(rest_of_source_, before(link(id), kThere));
    widen(target_, kThere);
    for (int length = 1; index(length) < by_length_.size(); ++length) {
      for (LinkId id : router_.trunks_[index(source_)])
        for (VertexId end : router_.switch_ends_[index(id)])
          if (rest(end).length == length) rest_of_source_ = std::min(rest_of_source_, before(link(id), rest(end)));
      if (rest_of_source_.known() && rest_of_source_.length <= length + 1) break;
      for (std::size_t i = 0; i < by_length_[index(length)].size(); ++i) {
        const VertexId place = by_length_[index(length)][i];
        if (rest(place).length == length) widen(place, rest(place));  // Otherwise a shorter way was found later.
      }
    }
    return rest_of_source_.known();
  }

  /// The way that `turn` picks; the one of the links declared first when it is 0.
  std::vector<Hop> read(std::size_t turn) const {
    std::vector<Hop> hops;
    std::vector<VertexId> places{source_}, next;  // Over a shared medium several may be next; the links behind decide.
    while (places.front() != target_) {
      std::vector<LinkId> ways;
      for (VertexId place : places) each_way(place, [&](LinkId id, VertexId) { ways.push_back(id); });
      std::sort(ways.begin(), ways.end());
      ways.erase(std::unique(ways.begin(), ways.end()), ways.end());
      const LinkId way = ways[turn % ways.size()];
      turn /= ways.size();
      // A shared medium has one direction: every station sends on the same one.
      hops.push_back({way, link(way).ends.size() > 2 || contains(places, link(way).ends.front())});
      next.clear();
      for (VertexId place : places)
        each_way(place, [&](LinkId id, VertexId end) {
          if (id == way && !contains(next, end)) next.push_back(end);
        });
      places.swap(next);
    }
    return hops;
  }

 private:
  template <class Id>
  static std::size_t index(Id id) {
    return static_cast<std::size_t>(id);
  }
  const Link& link(LinkId id) const { return router_.cluster_->links[index(id)]; }
  const Rest& rest(VertexId place) const {
    return place == source_ ? rest_of_source_ : rest_[index(place) - router_.cluster_->devices.size()];
  }

  /// Offers the ways through a place to its neighbours.
  void widen(VertexId place, const Rest from) {
    for (LinkId id : router_.trunks_[index(place)])
      for (VertexId end : router_.switch_ends_[index(id)]) {
        const Rest offered = before(link(id), from);
        Rest& known = rest_[index(end) - router_.cluster_->devices.size()];
        if (offered.length < known.length) {
          if (index(offered.length) >= by_length_.size()) by_length_.resize(index(offered.length) + 1);
          by_length_[index(offered.length)].push_back(end);
        }
        known = std::min(known, offered);
      }
  }

  /// Calls `use` with each link that leads on from a place as well as any, and where to.
  template <class Use>
  void each_way(VertexId place, Use use) const {
    const Rest left = rest(place);
    for (LinkId id : router_.attached_[index(target_)])
      if (contains(link(id).ends, place) && before(link(id), kThere) == left) use(id, target_);
    for (LinkId id : router_.trunks_[index(place)])
      for (VertexId end : router_.switch_ends_[index(id)])
        if (end != place && rest(end).known() && before(link(id), rest(end)) == left) use(id, end);
  }

  const Router& router_;
  VertexId source_, target_;
  std::vector<Rest> rest_;                          ///< Of each switch.
  std::vector<std::vector<VertexId>> by_length_{};  ///< Switches by what is left from them, when it was offered.
  Rest rest_of_source_;
};

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

std::optional<std::vector<Hop>> Router::hops(DeviceId from, DeviceId to) const {
  const auto given = std::lower_bound(cluster_->routes.begin(), cluster_->routes.end(), std::pair{from.value, to.value},
                                      [](const FixedRoute& r, const auto& ends) {
                                        return std::pair{r.from.value, r.to.value} < ends;
                                      });
  if (given != cluster_->routes.end() && given->from == from && given->to == to) return given->hops;
  Search search(*this, cluster_->vertex(from), cluster_->vertex(to));
  if (!search.find()) return std::nullopt;
  return search.read(cluster_->turns.empty() ? 0 : cluster_->turns[static_cast<std::size_t>(to)]);
}

std::optional<Route> Router::route(DeviceId from, DeviceId to) const {
  Route route{{}, {}, {std::numeric_limits<double>::infinity()}};
  if (from == to) return route;
  auto found = hops(from, to);
  if (!found) return std::nullopt;
  route.hops = *std::move(found);
  for (const Hop& hop : route.hops) {
    const Link& link = cluster_->links[static_cast<std::size_t>(hop.link)];
    route.latency += link.latency;
    route.bandwidth = std::min(route.bandwidth, link.bandwidth);
  }
  return route;
}

Route Router::require(DeviceId from, DeviceId to) const {
  if (auto found = route(from, to)) return *std::move(found);
  throw Infeasible("route",
                   "no path leads from '" + cluster_->vertex_name(cluster_->vertex(from)) + "' to '" +
                       cluster_->vertex_name(cluster_->vertex(to)) + "'",
                   "devices do not forward: join them by a link, or both to the same switch");
}

}  // namespace stagecraft
