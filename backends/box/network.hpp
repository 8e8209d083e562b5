#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/cluster/phases.hpp"

// What is built on this machine for a cluster: namespaces, cables, routes and queues, as plain data without any
// system call.

namespace stagecraft::box {

/// In what order a card sends packets that wait.
enum class Queue : std::uint8_t {
  Fair,  ///< A queue for each pair of devices, served in turn, and small packets (acknowledgements) first.
  Fifo   ///< One deep queue, as most switches and cards have.
};

struct NetworkOptions {
  Queue queue = Queue::Fair;
  double scale = 1;  ///< Divides every bandwidth and multiplies every latency, and every time of a change.
};

/// A network namespace: what it has of the network is all that its processes see.
struct Space {
  enum class Kind : std::uint8_t {
    Device,
    Switch,
    Medium  ///< The air or wire of a link that its stations share: every packet passes its one queue.
  };
  std::string name;
  Kind kind = Kind::Device;
  std::string address;  ///< "10.99.0.1" of a device; empty for others.
};

/// Two cards in two spaces and what is between them.
struct Cable {
  LinkId link;
  std::array<int, 2> spaces{};
  std::array<std::string, 2> cards;      ///< "c3a" in the first space, "c3b" in the second.
  std::array<std::string, 2> addresses;  ///< Addresses of the cards, which neighbors send to.
  Bandwidth rate;                        ///< The rate of each direction; zero: other links and media limit it.
  Seconds latency;
};

/// Where a space sends packets for a device.
struct Forwarding {
  int space = 0;
  int to = 0;     ///< The device.
  int from = -1;  ///< Only packets of this device, where routes to one device diverge; -1: all.
  int cable = 0;
  int end = 0;  ///< The end of the cable in this space.
};

/// A queue of a card or medium, and the pairs of devices that share it.
struct SharedQueue {
  int space = 0;
  std::string card;
  Bandwidth rate;
  LinkId link;
  bool forward = true;
  std::vector<int> flows;  ///< Indices into Network::flows.
};

/// A network of namespaces that has the links and routes of a cluster. It is plain data: nothing is built yet.
struct Network {
  std::vector<Space> spaces;  ///< Devices in the order of the cluster, then switches, then media.
  std::vector<Cable> cables;
  std::vector<Forwarding> forwarding;
  std::vector<RouteEnds> flows;  ///< The pairs of devices that talk, each with a queue.
  std::vector<Route> routes;     ///< Their routes, with bandwidths as scaled.
  std::vector<SharedQueue> queues;
  Cluster cluster;  ///< As scaled.
  NetworkOptions options;
};

/// The network of a cluster. All devices reach each other; these pairs talk, and without any, all pairs do. Infeasible,
/// with what would help, where it cannot be built of namespaces: too many devices, links without contention, more bytes
/// in a second than this machine can carry.
Network network_of(const Cluster&, std::vector<RouteEnds> flows, const NetworkOptions&);

}  // namespace stagecraft::box
