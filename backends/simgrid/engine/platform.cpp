// Builds SimGrid's platform from a Layout: hosts, links and routes, and the options of its network model.

#include "backends/simgrid/engine/platform.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::sg {

bool is_lv08_asked() {
  const char* const name = std::getenv("STAGECRAFT_SIMGRID_MODEL");
  if (name == nullptr || std::string_view(name).empty()) return false;
  if (std::string_view(name) == "LV08") return true;
  throw InputError(fmt::format("STAGECRAFT_SIMGRID_MODEL: '{}' is not known", name), "LV08, or unset it");
}

namespace {

/// The options of max-min make links share their bandwidth evenly and say nothing of latency, which we add. Without
/// them SimGrid models TCP's slow start and window and shares by round-trip time; these are its default constants.
std::vector<std::string> engine_options(bool lv08) {
  std::vector<std::string> options{"stagecraft", "--cfg=surf/precision:1e-12", "--cfg=debug/verbose-exit:no",
                                   "--log=root.thres:error"};
  const std::vector<const char*> network =
      lv08 ? std::vector{"model:LV08",     "crosstraffic:1",   "latency-factor:13.01", "bandwidth-factor:0.97",
                         "weight-S:20537", "TCP-gamma:4194304"}
           : std::vector{"model:CM02", "crosstraffic:0", "latency-factor:0", "TCP-gamma:1e30"};
  for (const char* option : network) options.push_back(fmt::format("--cfg=network/{}", option));
  return options;
}

}  // namespace

s4u::Engine& make_engine(bool lv08) {
  static std::vector<std::string> options = engine_options(lv08);
  static s4u::Engine* const engine = [] {
    std::vector<char*> argv;
    for (std::string& option : options) argv.push_back(option.data());
    argv.push_back(nullptr);
    int argc = static_cast<int>(options.size());
    return new s4u::Engine(&argc, argv.data());
  }();
  return *engine;
}

namespace {

/// A link of ours as one or two of SimGrid's.
struct Cable {
  s4u::Link* forward = nullptr;
  s4u::Link* backward = nullptr;
  s4u::SplitDuplexLink* both = nullptr;  ///< Only when the directions do not share.
};

class Builder {
 public:
  Builder(s4u::Engine& engine, const Cluster& cluster)
      : cluster_(cluster),
        zone_(add_star(engine, "cluster")),
        cables_(cluster.links.size()),
        hosts_(cluster.devices.size()),
        host_memories_(cluster.devices.size()),
        paces_(cluster.devices.size()) {}

  void add(const Layout& layout, const Program& program, std::span<const Route> routes) {
    for (LinkId link : layout.links) cables_[link] = make_cable(link);
    for (const Layout::Host& host : layout.hosts) {
      s4u::Host*& simgrid_host = hosts_[host.device];
      simgrid_host = add_host(zone_, fmt::format("d{}", host.device.value));
      if (!host.up.empty()) add_way_up(zone_, simgrid_host, in_route(host.up));
      simgrid_host->seal();
    }
    for (std::int32_t r : layout.exceptions) {
      const std::size_t i = r;
      const HostPair ends = ends_of(program.routes[i]);
      add_bypass(zone_, ends.from, ends.to, way_of(routes[i], r));
    }
    for (DeviceId d : layout.sharers) paces_[d] = make_pace(d);
    zone_->seal();
  }

  IdVector<DeviceId, Pace> paces() const { return paces_; }

  /// An end that is not valid is the memory of the other one's host; each device has a host of SimGrid's for it.
  HostPair ends_of(const RouteEnds& route) {
    if (route.from.valid() && route.to.valid()) return {hosts_[route.from], hosts_[route.to]};
    const DeviceId device = std::max(route.from, route.to);
    s4u::Host*& memory = host_memories_[device];
    if (memory == nullptr) {
      memory = add_host(zone_, fmt::format("d{}-host", device.value));
      memory->seal();
    }
    return route.from.valid() ? HostPair{hosts_[device], memory} : HostPair{memory, hosts_[device]};
  }

  std::vector<s4u::Link*> links_of(LinkId link) const {
    const Cable& cable = cables_[link];
    if (cable.both == nullptr) return {cable.forward};
    return {cable.forward, cable.backward};
  }

  void check(const HostPair& ends, const Route& route) const {
    std::vector<s4u::Link*> links;
    double latency = 0;  // route_to adds to it
    ends.from->route_to(ends.to, links, &latency);
    if (!links.empty() && route.max_rate.value < kInfinity && links[0]->get_bandwidth() == route.max_rate.value)
      links.erase(links.begin());
    bool same = links.size() == route.hops.size() &&
                std::abs(latency - route.latency.value) <= 1e-9 * (1e-6 + route.latency.value);
    for (std::size_t i = 0; same && i < links.size(); ++i) {
      const Hop& hop = route.hops[i];
      const Cable& cable = cables_[hop.link];
      same = links[i] == (hop.forward ? cable.forward : cable.backward) &&
             links[i]->get_bandwidth() == cluster_.links[hop.link].bandwidth.value;
    }
    if (!same)
      throw InternalError(fmt::format("SimGrid's route from {} to {} is not the router's", ends.from->get_cname(),
                                      ends.to->get_cname()));
  }

 private:
  Cable make_cable(LinkId id) {
    const Link& link = cluster_.links[id];
    const std::string name = fmt::format("l{}", id.value);
    if (link.duplex == Duplex::Full) {
      s4u::SplitDuplexLink* both = add_split_duplex_link(zone_, name, link.bandwidth.value);
      both->set_latency(link.latency.value);
      both->seal();
      return {both->get_link_up(), both->get_link_down(), both};
    }
    s4u::Link* one = add_link(zone_, name, link.bandwidth.value);
    one->set_latency(link.latency.value);
    if (link.duplex == Duplex::Unshared) one->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
    one->seal();
    return {one, one, nullptr};
  }

  std::vector<s4u::LinkInRoute> in_route(std::span<const Hop> hops) const {
    using Direction = s4u::LinkInRoute::Direction;
    std::vector<s4u::LinkInRoute> links;
    for (const Hop& hop : hops) {
      const Cable& cable = cables_[hop.link];
      if (cable.both == nullptr)
        links.emplace_back(cable.forward);
      else
        links.emplace_back(cable.both, hop.forward ? Direction::UP : Direction::DOWN);
    }
    return links;
  }

  /// Behind a window, a route has one more link, which each message may fill alone.
  std::vector<s4u::LinkInRoute> way_of(const Route& route, std::int32_t number) {
    std::vector<s4u::LinkInRoute> way = in_route(route.hops);
    if (route.max_rate.value == kInfinity) return way;
    s4u::Link* const window = add_link(zone_, fmt::format("w{}", number), route.max_rate.value);
    window->set_latency(0);
    window->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
    window->seal();
    way.insert(way.begin(), s4u::LinkInRoute(window));
    return way;
  }

  Pace make_pace(DeviceId d) {
    const auto host = [&](const char* end) {
      s4u::Host* simgrid_host = add_host(zone_, fmt::format("d{}-{}", d.value, end));
      simgrid_host->seal();
      return simgrid_host;
    };
    const LinkId memory = cluster_.devices[d].memory;
    Pace pace{{host("ops"), host("memory")}, add_link(zone_, fmt::format("p{}", d.value), 1)};
    pace.link->set_latency(0);
    pace.link->seal();
    std::vector<s4u::LinkInRoute> way = in_route(std::vector<Hop>{{memory, true}});
    way.insert(way.begin(), s4u::LinkInRoute(pace.link));
    add_bypass(zone_, pace.ends.from, pace.ends.to, way);
    return pace;
  }

  const Cluster& cluster_;
  s4u::NetZone* zone_;
  IdVector<LinkId, Cable> cables_;        ///< By LinkId.
  IdVector<DeviceId, s4u::Host*> hosts_;  ///< By DeviceId.
  IdVector<DeviceId, s4u::Host*> host_memories_;
  IdVector<DeviceId, Pace> paces_;
};

}  // namespace

Platform build_platform(s4u::Engine& engine, const Layout& layout, const Program& program, const Cluster& cluster,
                        std::span<const Route> routes) {
  Builder builder(engine, cluster);
  builder.add(layout, program, routes);
  engine.seal_platform();
  Platform platform;
  platform.paces = builder.paces();
  platform.ends.resize(program.routes.size());
  for (std::size_t r = 0; r < program.routes.size(); ++r) {
    if (routes[r].hops.empty()) continue;
    platform.ends[r] = builder.ends_of(program.routes[r]);
    builder.check(platform.ends[r], routes[r]);
  }
  platform.links.resize(cluster.links.size());
  for (LinkId link : layout.links) platform.links[link] = builder.links_of(link);
  return platform;
}

}  // namespace stagecraft::sg
