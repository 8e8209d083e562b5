#pragma once

#include "sim/core/parallel.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

/// Constants of an all-reduce among the devices of one node. An all-reduce of S bytes over n devices takes
///
///     alpha + hop (n - 1) + 2 (n - 1)/n S / bus + root sqrt(S)
///
/// One trip (all-gather, reduce-scatter, all-to-all, broadcast) takes half of alpha, hop and root, and moves half as
/// many bytes. The term in sqrt(S) covers the sizes between 1 and 256 MiB, which a line through latency and bandwidth
/// misses by 10 to 22 % (fits to the measured curves of topologies/collectives).
struct CollectiveConstants {
  Seconds alpha, hop;
  Bandwidth bus;
  double root = 0;  ///< Seconds for each square root of a byte.
  int mesh = 0;  ///< Devices of a node that links join in pairs, where `bus` is what all links of one carry together;
                 ///< 0: a switch joins them.

  /// What a group with this many members in a node can use: in a mesh only the links between its members.
  Bandwidth bus_of(int members) const {
    return members > 1 && members < mesh ? (members - 1.0) / (mesh - 1) * bus : bus;
  }
};

/// The members of a collective and where they are, as far as costs depend on it.
struct GroupShape {
  int ranks = 1;
  int ranks_per_node = 0;  ///< Members that share a node; 0 where all do.
  int stride = 1;          ///< Distance of neighbors in the list of devices.
  int near = 0;            ///< Members of a run, and runs are `far_stride` apart; 0: all members are in one run.
  int far_stride = 0;
  int step = 1;  ///< Only every step-th of these members belongs to the group.

  /// Place of a member in the list of devices, from the first.
  int place(int rank) const {
    const int member = rank * step;
    return near > 0 ? member % near * stride + member / near * far_stride : member * stride;
  }
  int local() const { return ranks_per_node > 0 && ranks_per_node < ranks ? ranks_per_node : ranks; }
  int nodes() const { return (ranks + local() - 1) / local(); }
};

/// The share of a network card's rate that NCCL reaches with large messages. It is assumed, not fitted.
inline constexpr double kCardShare = 0.85;
/// Latency of a round among nodes: for each node that a ring crosses, and twice that for an all-to-all. Assumed.
inline constexpr Seconds kNodeLatency{10e-6};

/// Time of one collective without contention. `bytes` counts the whole array, as phases_of() does.
///
/// Over several nodes a ring enters and leaves a node once, over the cards of its members there: its rate is the least
/// of the bus and the sum of those cards, and each node adds kNodeLatency to a trip. `card` is the rate of one network
/// card in one direction for each device. In an all-to-all each member sends what leaves its node over its own card.
Seconds collective_time(CollectiveKind, const GroupShape&, Bytes bytes, const CollectiveConstants&, Bandwidth card);

}  // namespace stagecraft
