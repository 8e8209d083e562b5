#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/change.hpp"
#include "sim/core/id_vector.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

/// A kind of machine that computes.
struct DeviceType {
  std::string name;
  std::string preset = {};  ///< The preset that it comes from: a file of topologies/devices has more figures of it.
  FlopRate peak{};          ///< Highest rate of the arithmetic the model uses.
  double efficiency = 1;    ///< Share of `peak` that dense layers reach.
  Bandwidth memory_bandwidth{};
  Bytes memory{};
  Bytes memory_reserve{};  ///< The part of `memory` that no program gets.
  Seconds launch{};        ///< Paid once for every layer.
  double speed = 1;        ///< Divisor of the times of layers whose times are given instead of computed.
  Watts idle{}, busy{};

  /// Memory that a program can use; zero when not known.
  Bytes usable_memory() const { return memory - memory_reserve; }
};

/// "80 GiB", or "80 GiB (1 GiB reserved)".
std::string memory_text(Bytes total, Bytes reserved);
/// "80 GiB" without a reserve, else "79 GiB of 80 GiB (1 GiB reserved)".
std::string usable_text(Bytes usable, Bytes reserved);

/// How the two directions of a link share its bandwidth.
enum class Duplex {
  Full,      ///< Each direction has all of it.
  Half,      ///< Both directions, or all stations of a shared medium, divide it.
  Unshared,  ///< Every transfer gets all of it: no contention.
};

struct Device {
  std::string name;
  DeviceTypeId type{0};
  std::string host;
  LinkId memory{};  ///< Valid: ops and messages share this link to memory. Its bandwidth is the rate of copies, which
                    ///< is half of the rate of reads and writes together.
  int host_memory = -1;        ///< Index into Cluster::memories; -1: the memory of its host is not known.
  LinkId down{}, up{};         ///< To the memory of its host and back; one link where the directions share it.
  LinkId bus_out{}, bus_in{};  ///< PCIe, which such copies and messages to and from other nodes cross; not valid: they
                               ///< share no link.
};

/// The memory of the host of a node: an end of routes, as a switch is, with a capacity.
struct HostMemory {
  std::string host;  ///< Name of the node.
  Bytes capacity;
  LinkId access{};  ///< What all copies share; not valid: they do not wait for each other there.
};

/// A cable between two places, or a shared medium among several.
struct Link {
  std::string name;
  Bandwidth bandwidth;  ///< Bytes of messages in a second: `efficiency` times the rate that a data sheet has.
  Seconds latency;
  Duplex duplex = Duplex::Full;
  std::vector<VertexId> ends;
  int length = 1;           ///< Number of links that it counts as when routes are compared.
  double efficiency = 1;    ///< The share of its rate that is not headers.
  Bytes window{};           ///< What one message may have under way without an acknowledgement; zero: no limit.
  bool slow_start = false;  ///< TCP's: the first message of a connection starts with a small window.
  bool one_queue = false;   ///< What waits for it goes in the order of arrival; else messages go in turn, words first.
};

/// One link crossed by a route. `forward` is from the first end to the second.
struct Hop {
  LinkId link;
  bool forward = true;

  friend bool operator==(const Hop&, const Hop&) = default;
};

struct Route {
  std::vector<Hop> hops;
  Seconds latency;                ///< Sum over the hops.
  Bandwidth bandwidth;            ///< The most that one message gets: the least over the hops, and `max_rate`.
  Bandwidth max_rate{kInfinity};  ///< The smallest window over the hops in each round trip, of twice the latency.
  bool slow_start = false;        ///< Whether a hop has it.
};

/// A route from one device to another that is given instead of found.
struct FixedRoute {
  DeviceId from, to;
  std::vector<Hop> hops;
};

/// What the program runs on. Vertices 0..devices-1 are the devices, in order; the rest are switches.
struct Cluster {
  std::string name;
  IdVector<DeviceTypeId, DeviceType> types;
  IdVector<DeviceId, Device> devices;
  std::vector<std::string> switches;
  std::vector<HostMemory> memories;  ///< One of each node, or none.
  IdVector<LinkId, Link> links;      ///< Links to memories and buses have no ends: the Router adds them to routes.
  std::vector<FixedRoute> routes;    ///< Sorted by `from`, then `to`; the Router chooses all other routes.
  std::vector<Change> changes;       ///< Changes while a program runs.
  Jitter jitter;
  IdVector<DeviceId, std::size_t> turns;  ///< Number of each target for round-robin among equally good links; empty:
                                          ///< the link declared first always wins.

  const DeviceType& type_of(DeviceId d) const { return types[devices[d].type]; }
  VertexId vertex(DeviceId d) const { return VertexId{d.value}; }
  VertexId switch_vertex(int index) const { return VertexId{std::ssize(devices) + index}; }
  std::string vertex_name(VertexId v) const;
  std::optional<DeviceId> find_device(const std::string& device_name) const;
  bool has_one_queue() const;  ///< Whether some link does.
  /// Devices of one host are one node; a device without a host is a node by itself.
  bool on_one_node(DeviceId a, DeviceId b) const;
};

/// The node of each of these devices by Cluster::on_one_node(), numbered in their order.
std::vector<int> nodes_of(const std::vector<DeviceId>&, const Cluster&);
/// The node of each device of a cluster.
std::vector<int> node_of(const Cluster&);
/// How many of these devices share the node that has most of them.
int most_on_a_node(const std::vector<DeviceId>&, const Cluster&);

/// Routes between devices: those that are given; else devices do not forward traffic, the fewest links win, then the
/// least time per byte, then the links declared first, or those whose turn it is for the target. It keeps what it has
/// found out about the ways to a switch, so one is not for several threads at once.
class Router {
 public:
  explicit Router(const Cluster& cluster);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;
  /// Nothing when no path exists. A device reaches itself over no link. An end that is not valid is the memory of the
  /// other one's host.
  std::optional<Route> route(DeviceId from, DeviceId to) const;
  /// The route, or Infeasible that names both devices when no path exists.
  Route require(DeviceId from, DeviceId to) const;

 private:
  class ShortestPaths;
  class PathCache;
  ShortestPaths& ways_to(VertexId a_switch) const;
  std::optional<std::vector<Hop>> hops(DeviceId from, DeviceId to) const;
  std::optional<std::vector<Hop>> host_hops(const Device&, bool up) const;
  void add_buses(DeviceId from, DeviceId to, std::vector<Hop>&) const;

  const Cluster* cluster_;
  IdVector<VertexId, std::vector<LinkId>> attached_;  ///< All links of a vertex.
  IdVector<VertexId, std::vector<LinkId>> trunks_;    ///< The attached links that lead on to a switch.
  IdVector<LinkId, std::vector<VertexId>> switch_ends_;
  std::unique_ptr<PathCache> kept_;
};

}  // namespace stagecraft
