// Plans the network that stands for a cluster, as plain data: namespaces, cables, routes and queues, or the reason why
// this machine cannot carry it.

#include "backends/box/network.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::box {
namespace {

constexpr int kMostDevices = 64;
constexpr std::size_t kMostQueues = 256;  // Each has a filter that every packet of the card is compared with.
/// What a core passes through queues and cards in a second: measured, packets of 1500 bytes.
constexpr double kBytesPerCore = 60e6;

Cluster scaled(Cluster cluster, double scale) {
  for (Link& link : cluster.links) {
    link.bandwidth = link.bandwidth / scale;
    link.latency = link.latency * scale;
  }
  for (Change& change : cluster.changes)
    for (Seconds Change::*time : {&Change::from, &Change::until, &Change::every, &Change::lasts})
      if (change.*time < Seconds{kForEver}) change.*time = change.*time * scale;
  return cluster;
}

bool is_medium(const Link& link) { return link.duplex == Duplex::Half || link.ends.size() > 2; }

/// The vertices that a route visits, both devices included.
std::vector<VertexId> vertices_of(const Cluster& cluster, const RouteEnds& pair, const Route& route) {
  std::vector<VertexId> visited{cluster.vertex(pair.from)};
  for (std::size_t h = 0; h < route.hops.size(); ++h) {
    const Link& link = cluster.links[route.hops[h].link];
    VertexId next = cluster.vertex(pair.to);
    if (h + 1 < route.hops.size()) {
      const std::vector<VertexId>& after = cluster.links[route.hops[h + 1].link].ends;
      for (const VertexId end : link.ends)
        if (end != visited.back() && std::find(after.begin(), after.end(), end) != after.end()) next = end;
    }
    visited.push_back(next);
  }
  return visited;
}

/// The hops that have a cable. PCIe (cluster.host.pcie) has none: a box has no copies to hosts, with which messages
/// share it, so it must not slow down a message alone.
Route cabled(const Cluster& cluster, Route route) {
  const auto bandwidth = [&](const Hop& hop) { return cluster.links[hop.link].bandwidth; };
  const auto bus = std::stable_partition(route.hops.begin(), route.hops.end(),
                                         [&](const Hop& hop) { return !cluster.links[hop.link].ends.empty(); });
  for (auto on_bus = bus; on_bus != route.hops.end(); ++on_bus)
    if (std::all_of(route.hops.begin(), bus, [&](const Hop& hop) { return bandwidth(*on_bus) < bandwidth(hop); }))
      throw Infeasible("box",
                       fmt::format("messages cross PCIe '{}', which is slower than the network, and a network of "
                                   "namespaces has no PCIe",
                                   cluster.links[on_bus->link].name),
                       "write a larger cluster.host.pcie, or leave it out");
  route.hops.erase(bus, route.hops.end());
  return route;
}

class NetworkWriter {
 public:
  NetworkWriter(const Cluster& cluster, std::vector<RouteEnds> flows, const NetworkOptions& options) {
    network_.cluster = scaled(cluster, options.scale);
    network_.options = options;
    network_.flows = std::move(flows);
  }

  Network write() {
    add_spaces();
    add_flows();
    add_cables();
    for (std::size_t f = 0; f < network_.flows.size(); ++f)
      add_route(network_.flows[f], network_.routes[f], static_cast<int>(f));
    for (std::size_t f = 0; f < others_.size(); ++f) add_route(others_[f], other_routes_[f], {});
    require_rates();
    return std::move(network_);
  }

 private:
  void add_spaces() {
    const Cluster& c = network_.cluster;
    if (std::ssize(c.devices) > kMostDevices)
      throw Infeasible("box",
                       fmt::format("a network of namespaces has at most {} devices, and this cluster has {}",
                                   kMostDevices, c.devices.size()),
                       "take a smaller cluster of the same kind, such as fewer nodes");
    for (const DeviceId d : c.devices.ids())
      network_.spaces.push_back({c.devices[d].name, Space::Kind::Device, fmt::format("10.99.0.{}", d.value + 1)});
    for (const std::string& name : c.switches) network_.spaces.push_back({name, Space::Kind::Switch, {}});
  }

  /// Routes lead from each device to each other one. The pairs that talk come first.
  void add_flows() {
    const Cluster& c = network_.cluster;
    const Router router(c);
    std::set<std::pair<int, int>> talk, reachable;
    for (const DeviceId a : c.devices.ids())
      for (const DeviceId b : c.devices.ids())
        if (a != b && router.route(a, b)) reachable.insert({a.value, b.value});
    // Whoever talks is answered: acknowledgements go back.
    for (const RouteEnds& r : network_.flows)
      if (r.from != r.to) talk.insert({{r.from.value, r.to.value}, {r.to.value, r.from.value}});
    if (talk.empty()) talk = reachable;
    network_.flows.clear();
    for (const auto& [a, b] : talk) network_.flows.push_back({DeviceId{a}, DeviceId{b}});
    for (const auto& pair : reachable)
      if (!talk.contains(pair)) others_.push_back({DeviceId{pair.first}, DeviceId{pair.second}});
    for (const RouteEnds& r : network_.flows) network_.routes.push_back(cabled(c, router.require(r.from, r.to)));
    for (const RouteEnds& r : others_) other_routes_.push_back(cabled(c, router.require(r.from, r.to)));
  }

  /// Cables for the links that some route crosses. A station of a medium has a cable to its air with half of the
  /// latency; the other half is on the cable that a packet leaves by.
  void add_cables() {
    const Cluster& c = network_.cluster;
    std::set<LinkId> used;
    for (const std::vector<Route>* routes : {&network_.routes, &other_routes_})
      for (const Route& route : *routes)
        for (const Hop& hop : route.hops) used.insert(hop.link);
    for (const LinkId id : used) {
      const Link& link = c.links[id];
      if (link.duplex == Duplex::Unshared) {
        require_narrower_links(id);
        add_cable(id, link.ends[0].value, link.ends[1].value, {}, link.latency);
        continue;
      }
      if (!is_medium(link)) {
        add_cable(id, link.ends[0].value, link.ends[1].value, link.bandwidth, link.latency);
        continue;
      }
      const int air = static_cast<int>(network_.spaces.size());
      network_.spaces.push_back({link.name, Space::Kind::Medium, {}});
      air_[id] = static_cast<int>(network_.queues.size());
      network_.queues.push_back({air, "ifb0", link.bandwidth, id, true, {}});
      for (const VertexId end : link.ends) add_cable(id, end.value, air, {}, link.latency / 2);
    }
  }

  /// An unshared link is a cable without a limit. That is right where other links limit each transfer that crosses it.
  void require_narrower_links(LinkId id) const {
    const Cluster& c = network_.cluster;
    for (const Route& route : network_.routes) {
      double shared = kInfinity;
      bool crosses = false;
      for (const Hop& hop : route.hops) {
        crosses = crosses || hop.link == id;
        if (c.links[hop.link].duplex != Duplex::Unshared) shared = std::min(shared, c.links[hop.link].bandwidth.value);
      }
      if (crosses && shared > c.links[id].bandwidth.value)
        throw Infeasible(
            "box",
            fmt::format("link '{}' is unshared, so each transfer over it gets all of its {}, which no queue "
                        "can do",
                        c.links[id].name, to_text(c.links[id].bandwidth)),
            "give it another duplex, such as full");
    }
  }

  void add_cable(LinkId link, int a, int b, Bandwidth rate, Seconds latency) {
    const int number = static_cast<int>(network_.cables.size());
    // The first card of a device has the device's address, so that a device with one card has one address.
    const auto address = [&](int space, int end) {
      const std::string& device = network_.spaces[space].address;
      if (!device.empty() && has_card_.insert(space).second) return device;
      return fmt::format("10.98.{}.{}", number / 128, number % 128 * 2 + end);
    };
    network_.cables.push_back({link,
                               {a, b},
                               {fmt::format("c{}a", number), fmt::format("c{}b", number)},
                               {address(a, 0), address(b, 1)},
                               rate,
                               latency});
    cable_[{link, a, b}] = number;
    if (rate.value <= 0) return;
    for (const int end : {0, 1}) {
      queue_of_card_[{number, end}] = static_cast<int>(network_.queues.size());
      const Cable& cable = network_.cables.back();
      network_.queues.push_back({cable.spaces[end], cable.cards[end], rate, link, end == 0, {}});
    }
  }

  /// The cable between two places that stand for the ends of a link, and which end the first is.
  std::pair<int, int> find_cable(LinkId link, int a, int b) const {
    const auto it = cable_.find({link, a, b});
    return it != cable_.end() ? std::pair{it->second, 0} : std::pair{cable_.at({link, b, a}), 1};
  }

  /// `flow`: the index in `Network::flows` where these two devices talk; none for other pairs.
  void add_route(const RouteEnds& pair, const Route& route, std::optional<int> flow) {
    const std::vector<VertexId> visited = vertices_of(network_.cluster, pair, route);
    for (std::size_t h = 0; h < route.hops.size(); ++h) {
      const LinkId link = route.hops[h].link;
      const int a = visited[h].value, b = visited[h + 1].value;
      if (const auto it = air_.find(link); it != air_.end()) {
        const int air = network_.queues[it->second].space;
        forward(pair, find_cable(link, a, air), a);
        forward(pair, find_cable(link, air, b), air);
        if (flow) network_.queues[it->second].flows.push_back(*flow);
        continue;
      }
      const auto [cable, end] = find_cable(link, a, b);
      forward(pair, {cable, end}, a);
      if (const auto queue = queue_of_card_.find({cable, end}); flow && queue != queue_of_card_.end())
        network_.queues[queue->second].flows.push_back(*flow);
    }
  }

  /// Packets of this pair leave `space` by this end of a cable. Routes to one device that part have rules by source.
  void forward(const RouteEnds& pair, std::pair<int, int> way, int space) {
    const auto [it, is_new] = forwarded_.try_emplace({space, pair.to.value}, way);
    if (!is_new && it->second == way) return;
    network_.forwarding.push_back({space, pair.to.value, is_new ? -1 : pair.from.value, way.first, way.second});
  }

  void require_rates() const {
    std::map<int, double> sent;
    for (std::size_t f = 0; f < network_.flows.size(); ++f) {
      double& rate = sent[network_.flows[f].from.value];
      rate = std::max(rate, network_.routes[f].bandwidth.value);
    }
    double total = 0;
    for (const auto& [device, rate] : sent) total += rate;
    const double limit = kBytesPerCore * std::max(1U, std::thread::hardware_concurrency());
    if (total > limit)
      throw Infeasible("box",
                       fmt::format("the devices may send {} together, and this machine carries about {} through its "
                                   "queues",
                                   to_text(Bandwidth{total}), to_text(Bandwidth{limit})),
                       fmt::format("--scale {:.0f} divides all rates by that number and multiplies all times by it",
                                   std::max(2.0, 1.2 * network_.options.scale * total / limit)));
    for (const SharedQueue& q : network_.queues)
      if (network_.options.queue == Queue::Fair && q.flows.size() > kMostQueues)
        throw Infeasible("box",
                         fmt::format("link '{}' carries {} pairs of devices, and a card has at most {} fair queues",
                                     network_.cluster.links[q.link].name, q.flows.size(), kMostQueues),
                         "take --queue fifo, or a smaller cluster");
  }

  Network network_;
  std::vector<RouteEnds> others_;  ///< Pairs of devices that do not talk, but can reach each other.
  std::vector<Route> other_routes_;
  std::set<int> has_card_;                             ///< Devices.
  std::map<LinkId, int> air_;                          ///< Index of the queue of each medium.
  std::map<std::tuple<LinkId, int, int>, int> cable_;  ///< By link and the spaces of its ends.
  std::map<std::pair<int, int>, int> queue_of_card_;   ///< By cable and end.
  std::map<std::pair<int, int>, std::pair<int, int>> forwarded_;
};

}  // namespace

Network network_of(const Cluster& cluster, std::vector<RouteEnds> flows, const NetworkOptions& options) {
  return NetworkWriter(cluster, std::move(flows), options).write();
}

}  // namespace stagecraft::box
