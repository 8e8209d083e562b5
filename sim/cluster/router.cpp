// Finds the route between two devices: the fewest links, then the least time per byte, then the links declared first,
// or those whose turn it is. Links have small whole lengths, mostly one, and lengths come first in the order of routes,
// so Dijkstra's algorithm becomes a search over the switches by rising length, from the target backwards until the
// source's own links close it. Then the route is read forwards over links that lead on as well as any: the first of
// them, or the one whose turn it is for this target. Devices never forward, and nothing walks the devices of a large
// switch. Cost: O(links of switches no farther from the target than the source is), O(1) on a star of any size; once
// for all targets of a switch whose best routes arrive over one link.
//
// Turns: of k links that lead on, a target with the number n takes link n mod k, and n / k counts from there on. On a
// fat tree whose devices are numbered along its leaves this is D-mod-k (Zahavi, Fat-tree routing and node ordering
// providing contention free traffic for MPI global collectives, JPDC 2012): shifts cross it without a meeting.

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <unordered_map>
#include <utility>

#include "sim/cluster/cluster.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft {
namespace {

/// What is left from a place to the target.
struct Rest {
  int length = std::numeric_limits<int>::max();
  double attoseconds = 0;  ///< Time per byte summed over the links.

  bool is_reachable() const { return length != std::numeric_limits<int>::max(); }
  friend auto operator<=>(const Rest&, const Rest&) = default;
};

constexpr Rest kThere{0, 0};
constexpr std::size_t kUsualHops = 8;

// Whole attoseconds add up to the same number in any order (exact below 2^53), so ties are ties both ways round. Who
// uses a route refuses links whose bandwidth makes no sense.
Rest before(const Link& link, const Rest& rest) {
  const double time = 1e18 / link.bandwidth.value;
  return {rest.length + link.length, rest.attoseconds + (std::isfinite(time) ? std::nearbyint(time) : 0)};
}

template <class T>
bool contains(const std::vector<T>& values, T one) {
  return std::find(values.begin(), values.end(), one) != values.end();
}

}  // namespace

/// The ways from anywhere to one device or switch. Found as far as they are asked for.
class Router::ShortestPaths {
 public:
  ShortestPaths(const Router& router, VertexId target) : router_(router), target_(target), by_length_(1) {
    // To a switch without links to others, such as the one in a node, no way leads through another switch.
    if (is_device(target) || !router.trunks_[target].empty()) rest_.resize(router.cluster_->switches.size());
    if (is_device(target)) {
      widen(target, kThere);
      return;
    }
    if (!rest_.empty()) rest_[place_of(target)] = kThere;
    by_length_.front().push_back(target);
  }

  /// What is left from a device; not known when no path leads from there.
  Rest from(VertexId source) {
    Rest best;
    if (is_device(target_))
      for (LinkId id : router_.attached_[target_])
        if (contains(link(id).ends, source)) best = std::min(best, before(link(id), kThere));
    for (int length = 0; length < std::ssize(by_length_); ++length) {
      for (LinkId id : router_.trunks_[source])
        for (VertexId end : router_.switch_ends_[id])
          if (left_from(end).length == length) best = std::min(best, before(link(id), left_from(end)));
      if (best.is_reachable() && best.length <= length + 1) break;
      if (length == widened_) widen_all(widened_++);
    }
    return best;
  }

  /// The way from a device with that much left that `turn` picks; the one of the links declared first when it is 0.
  void read(VertexId source, const Rest& left, std::size_t turn, std::vector<Hop>& hops) const;

 private:
  bool is_device(VertexId place) const { return router_.cluster_->devices.contains(DeviceId{place.value}); }
  std::size_t place_of(VertexId a_switch) const { return a_switch.value - router_.cluster_->devices.size(); }
  const Link& link(LinkId id) const { return router_.cluster_->links[id]; }
  /// What is left from a switch to the target.
  Rest left_from(VertexId a_switch) const {
    if (rest_.empty()) return a_switch == target_ ? kThere : Rest{};
    return rest_[place_of(a_switch)];
  }

  /// Offers the ways through a place to its neighbors.
  void widen(VertexId place, Rest from);

  /// Through all that are so far away; what is nearer was before.
  void widen_all(int length) {
    for (std::size_t i = 0; i < by_length_[length].size(); ++i) {
      const VertexId place = by_length_[length][i];
      const Rest left = left_from(place);
      if (left.length == length) widen(place, left);  // Otherwise a shorter way was found later.
    }
  }

  /// Calls `use` with each link that leads on from a place as well as any, and where to.
  template <class Use>
  void each_way(VertexId place, const Rest& left, Use use) const;

  /// Calls `use` with each place where one of these links leads.
  template <class Use>
  void each_end(VertexId place, const Rest& left, LinkId id, Use use) const {
    const bool is_attached = contains(link(id).ends, place);
    if (is_attached && is_device(target_) && contains(link(id).ends, target_) && across(id, kThere) == left)
      use(target_);
    if (!is_attached) return;
    for (VertexId end : router_.switch_ends_[id])
      if (end != place && left_from(end).is_reachable() && across(id, left_from(end)) == left) use(end);
  }

  /// The links that lead on from these places, which one link reached, as well as any. Valid until the next
  /// call.
  const std::vector<LinkId>& ways_on(const std::vector<VertexId>& places, const Rest& left) const;

  /// What is left before a link, as before() has it, without a division.
  Rest across(LinkId id, const Rest& rest) const;

  const Router& router_;
  VertexId target_;
  std::vector<Rest> rest_;                        ///< [switch]; empty where only the target itself is reached.
  std::vector<std::vector<VertexId>> by_length_;  ///< Switches by the length that was left from them when offered.
  int widened_ = 0;                               ///< All lengths below this one were widened.
  /// [switch]: its ways_on(), which stay as they are once a route was read through it, because all that is nearer to
  /// the target was widened before. A leaf with a link to each of 2,048 spines is looked through once.
  mutable std::unordered_map<std::int64_t, std::vector<LinkId>> ways_on_;
};

/// The ways to the switches that were asked for last, and what a search reads of each link, contiguous in memory.
class Router::PathCache {
 public:
  struct Crossing {
    Rest rest;
    VertexId switches[2];  ///< The switches at its ends, unless there are more than two.
    int count = 0;
  };

  /// What ShortestPaths::read() works with, so that millions of routes need no memory of their own.
  std::vector<VertexId> places, next_places;
  std::vector<LinkId> next_links;

  explicit PathCache(std::size_t switches) : most_(std::max<std::size_t>(1, kRoom / (sizeof(Rest) * (switches + 1)))) {}

  void note(const Link& link, const std::vector<VertexId>& switches) {
    Crossing& crossing = crossings_.emplace_back();
    crossing.rest = before(link, kThere);
    crossing.count = static_cast<int>(switches.size());
    std::copy_n(switches.begin(), std::min<std::size_t>(switches.size(), 2), crossing.switches);
  }
  const Crossing& crossing(LinkId id) const { return crossings_[id]; }

  ShortestPaths& to(const Router& router, VertexId a_switch) {
    auto& ways = known_[a_switch.value];
    if (ways) return *ways;
    if (!router.trunks_[a_switch].empty()) order_.push_back(a_switch.value);  // Others have no table.
    if (order_.size() > most_) {
      known_.erase(order_.front());
      order_.pop_front();
    }
    ways = std::make_unique<ShortestPaths>(router, a_switch);
    return *ways;
  }
  /// Whether there is room for a list of `links` links; all lists of a large fat tree together may be too long.
  bool takes(std::size_t links) {
    if (links > room_for_links_) return false;
    room_for_links_ -= links;
    return true;
  }
  /// The link over which the best routes to a device arrive, if it is one alone and leads from one switch.
  std::optional<LinkId> only_last_link(const Router& router, VertexId source, VertexId target);

 private:
  static constexpr std::size_t kRoom = std::size_t{1} << 26;  // Bytes.

  std::size_t most_;
  std::size_t room_for_links_ = kRoom / sizeof(LinkId);
  IdVector<LinkId, Crossing> crossings_;
  std::unordered_map<std::int64_t, std::unique_ptr<ShortestPaths>> known_;
  std::deque<std::int64_t> order_;
};

Rest Router::ShortestPaths::across(LinkId id, const Rest& rest) const {
  const Rest& link = router_.kept_->crossing(id).rest;
  return {rest.length + link.length, rest.attoseconds + link.attoseconds};
}

template <class Use>
void Router::ShortestPaths::each_way(VertexId place, const Rest& left, Use use) const {
  if (is_device(target_))
    for (LinkId id : router_.attached_[target_])
      if (contains(link(id).ends, place) && across(id, kThere) == left) use(id, target_);
  for (LinkId id : router_.trunks_[place]) {
    const PathCache::Crossing& crossing = router_.kept_->crossing(id);
    const VertexId* ends = crossing.count > 2 ? router_.switch_ends_[id].data() : crossing.switches;
    for (int e = 0; e < crossing.count; ++e)
      if (ends[e] != place && left_from(ends[e]).is_reachable() && across(id, left_from(ends[e])) == left)
        use(id, ends[e]);
  }
}

const std::vector<LinkId>& Router::ShortestPaths::ways_on(const std::vector<VertexId>& places, const Rest& left) const {
  const VertexId place = places.front();
  const bool is_lasting = places.size() == 1 && !is_device(place) && !is_device(target_);
  if (is_lasting)
    if (const auto it = ways_on_.find(place.value); it != ways_on_.end()) return it->second;
  std::vector<LinkId>& ways = router_.kept_->next_links;
  ways.clear();
  for (VertexId from : places) each_way(from, left, [&](LinkId id, VertexId) { ways.push_back(id); });
  if (!std::is_sorted(ways.begin(), ways.end())) std::sort(ways.begin(), ways.end());
  ways.erase(std::unique(ways.begin(), ways.end()), ways.end());
  return is_lasting && router_.kept_->takes(ways.size()) ? ways_on_[place.value] = ways : ways;
}

void Router::ShortestPaths::read(VertexId source, const Rest& left, std::size_t turn, std::vector<Hop>& hops) const {
  // A shared medium may lead to several places; the links after it decide.
  std::vector<VertexId>&places = router_.kept_->places, &next = router_.kept_->next_places;
  places.assign(1, source);
  Rest here = left;
  while (places.front() != target_) {
    const std::vector<LinkId>& ways = ways_on(places, here);
    const LinkId way = ways[turn % ways.size()];
    turn /= ways.size();
    // A shared medium has one direction: every station sends on the same one.
    hops.push_back({way, link(way).ends.size() > 2 || contains(places, link(way).ends.front())});
    next.clear();
    for (VertexId place : places)
      each_end(place, here, way, [&](VertexId end) {
        if (!contains(next, end)) next.push_back(end);
      });
    places.swap(next);
    if (places.front() != target_) here = left_from(places.front());
  }
}

void Router::ShortestPaths::widen(VertexId place, const Rest from) {
  for (LinkId id : router_.trunks_[place]) {
    const PathCache::Crossing& crossing = router_.kept_->crossing(id);
    const Rest offered{from.length + crossing.rest.length, from.attoseconds + crossing.rest.attoseconds};
    const VertexId* ends = crossing.count > 2 ? router_.switch_ends_[id].data() : crossing.switches;
    for (int e = 0; e < crossing.count; ++e) {
      Rest& shortest = rest_[place_of(ends[e])];
      if (offered.length < shortest.length) {
        if (offered.length >= std::ssize(by_length_)) by_length_.resize(offered.length + 1);
        by_length_[offered.length].push_back(ends[e]);
      }
      shortest = std::min(shortest, offered);
    }
  }
}

std::optional<LinkId> Router::PathCache::only_last_link(const Router& router, VertexId source, VertexId target) {
  const std::vector<LinkId>& links = router.attached_[target];
  for (const LinkId id : links)
    if (router.cluster_->links[id].ends.size() != 2 || router.switch_ends_[id].size() != 1) return std::nullopt;
  if (links.size() == 1) return links.front();
  Rest shortest;
  std::optional<LinkId> best;  // Nothing also when several are as good.
  for (const LinkId id : links) {
    const Rest left = to(router, router.switch_ends_[id].front()).from(source);
    if (!left.is_reachable()) continue;
    const Rest whole = before(router.cluster_->links[id], left);
    if (whole > shortest) continue;
    best = whole == shortest ? std::nullopt : std::optional(id);
    shortest = whole;
  }
  return best;
}

Router::~Router() = default;
Router::ShortestPaths& Router::ways_to(VertexId a_switch) const { return kept_->to(*this, a_switch); }

Router::Router(const Cluster& cluster)
    : cluster_(&cluster),
      attached_(cluster.devices.size() + cluster.switches.size()),
      trunks_(attached_.size()),
      switch_ends_(cluster.links.size()),
      kept_(std::make_unique<PathCache>(cluster.switches.size())) {
  const auto is_switch = [&](VertexId v) { return !cluster.devices.contains(DeviceId{v.value}); };
  for (const LinkId id : cluster.links.ids()) {
    const Link& link = cluster.links[id];
    for (VertexId end : link.ends) {
      STAGECRAFT_CHECK(attached_.contains(end));
      attached_[end].push_back(id);
      if (is_switch(end)) switch_ends_[id].push_back(end);
    }
    for (VertexId end : link.ends) {
      if (switch_ends_[id].size() > (is_switch(end) ? 1U : 0U)) trunks_[end].push_back(id);
    }
    kept_->note(link, switch_ends_[id]);
  }
}

std::optional<std::vector<Hop>> Router::hops(DeviceId from, DeviceId to) const {
  const auto given = std::lower_bound(cluster_->routes.begin(), cluster_->routes.end(), std::pair{from.value, to.value},
                                      [](const FixedRoute& r, const auto& ends) {
                                        return std::pair{r.from.value, r.to.value} < ends;
                                      });
  if (given != cluster_->routes.end() && given->from == from && given->to == to) return given->hops;
  const VertexId source = cluster_->vertex(from), target = cluster_->vertex(to);
  const std::size_t turn = cluster_->turns.empty() ? 0 : cluster_->turns[to];
  std::vector<Hop> hops;
  hops.reserve(kUsualHops);
  const auto read = [&](ShortestPaths& ways) {
    const Rest left = ways.from(source);
    if (left.is_reachable()) ways.read(source, left, turn, hops);
    return left.is_reachable();
  };
  // All devices of a switch are reached by the same ways to it.
  if (const std::optional<LinkId> last = kept_->only_last_link(*this, source, target)) {
    if (!read(ways_to(switch_ends_[*last].front()))) return std::nullopt;
    hops.push_back({*last, cluster_->links[*last].ends.back() == target});
    return hops;
  }
  ShortestPaths ways(*this, target);
  return read(ways) ? std::optional(std::move(hops)) : std::nullopt;
}

std::optional<std::vector<Hop>> Router::host_hops(const Device& device, bool up) const {
  if (device.host_memory < 0) return std::nullopt;
  std::vector<Hop> hops{{up ? device.up : device.down, true}};
  const LinkId access = cluster_->memories[device.host_memory].access;
  if (access.valid()) hops.insert(up ? hops.begin() : hops.end(), Hop{access, true});
  return hops;
}

/// Copies cross the bus of their device, messages to another node the buses of both devices.
void Router::add_buses(DeviceId from, DeviceId to, std::vector<Hop>& hops) const {
  if (from.valid() && to.valid() && cluster_->on_one_node(from, to)) return;
  const LinkId out = from.valid() ? cluster_->devices[from].bus_out : LinkId{};
  const LinkId in = to.valid() ? cluster_->devices[to].bus_in : LinkId{};
  if (out.valid()) hops.insert(hops.begin(), Hop{out, true});
  if (in.valid()) hops.push_back({in, true});
}

std::optional<Route> Router::route(DeviceId from, DeviceId to) const {
  Route route{{}, {}, {kInfinity}};
  if (from == to) return route;
  auto path = !to.valid()     ? host_hops(cluster_->devices[from], false)
              : !from.valid() ? host_hops(cluster_->devices[to], true)
                              : hops(from, to);
  if (!path) return std::nullopt;
  route.hops = *std::move(path);
  if (!cluster_->memories.empty()) add_buses(from, to, route.hops);
  double window = kInfinity;
  for (const Hop& hop : route.hops) {
    const Link& link = cluster_->links[hop.link];
    route.latency += link.latency;
    route.bandwidth = std::min(route.bandwidth, link.bandwidth);
    if (link.window.value > 0) window = std::min(window, link.window.value);
    route.slow_start |= link.slow_start;
  }
  if (window < kInfinity && route.latency.value > 0) route.max_rate = {window / (2 * route.latency.value)};
  route.bandwidth = std::min(route.bandwidth, route.max_rate);
  return route;
}

Route Router::require(DeviceId from, DeviceId to) const {
  if (auto path = route(from, to)) return *std::move(path);
  if (!from.valid() || !to.valid())
    throw Infeasible("route", "no path leads from '" + cluster_->devices[std::max(from, to)].name + "' to host memory",
                     "cluster.host says what it is");
  throw Infeasible("route",
                   "no path leads from '" + cluster_->vertex_name(cluster_->vertex(from)) + "' to '" +
                       cluster_->vertex_name(cluster_->vertex(to)) + "'",
                   "devices do not forward: join them by a link, or both to the same switch");
}

}  // namespace stagecraft
