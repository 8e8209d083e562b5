#pragma once

#include <cstdint>
#include <vector>

#include "sim/cluster/link_table.hpp"
#include "sim/core/parallel.hpp"

namespace stagecraft {

/// The devices of a collective in the order of their ranks, and the node of each. Without nodes all are on one.
struct DeviceGroup {
  std::vector<DeviceId> devices;
  std::vector<int> nodes = {};
};

/// Devices of one host share a node; a device without a host is a node by itself.
DeviceGroup group_of(std::vector<DeviceId> devices, const Cluster&);

enum class CollectiveAlgorithm : std::uint8_t { Ring, Tree, Hierarchical, Direct, Nvls };

inline constexpr CollectiveAlgorithm kCollectiveAlgorithms[] = {CollectiveAlgorithm::Ring, CollectiveAlgorithm::Tree,
                                                                CollectiveAlgorithm::Hierarchical,
                                                                CollectiveAlgorithm::Direct, CollectiveAlgorithm::Nvls};

const char* name(CollectiveAlgorithm);  ///< "ring".

struct RouteEnds {
  DeviceId from, to;

  friend bool operator==(const RouteEnds&, const RouteEnds&) = default;
};

/// All members start a phase together. They pay `latencies` times the latency of its slowest route, then `bytes` go
/// over every route at once, and the phase ends when the last byte has arrived. In no phase does a device send, or
/// receive, on two routes.
struct Phase {
  int latencies = 0;
  std::uint64_t bytes = 0;
  std::vector<RouteEnds> routes;
};

/// The phases of a collective, one after another. This is the only place with formulas of collectives.
///
/// `bytes` counts the whole array, as nccl-tests does: what each member contributes to a sum, the gathered array of an
/// all-gather, and what each member sends in total, to itself too, in an all-to-all of equal parts. Where experts do
/// not get equally many tokens, the fullest part decides: multiply by maximum over mean. A group of one has no phases.
///
/// For a group of n on N nodes with G devices each:
/// - Ring: chunks go around the ring in a pipeline. All-reduce 2(n-1) latencies and 2(n-1)/n of the bytes over every
///   route; reduce-scatter and all-gather half of that; broadcast n-1 latencies and all bytes along a chain; all-to-all
///   n-1 latencies and (n-1)/2 of the bytes, because parts pass through the members between their ends.
/// - Tree: all-reduce and broadcast in ceil(log2 n) levels of a binomial tree, each a latency and the whole array.
/// - Hierarchical: rings inside the nodes and rings across them, among the devices with the same place in their node.
///   An all-to-all exchanges inside the node first and then once with each other node.
/// - Direct: n-1 steps; in each, every member sends to another one, so that no port is used twice. The messages are
///   posted together, so one latency is paid. With equal nodes all steps of one distance between nodes come together.
///
/// InputError when the algorithm does not serve the kind, or the group.
std::vector<Phase> phases_of(CollectiveKind, CollectiveAlgorithm, const DeviceGroup&, std::uint64_t bytes);

/// Direct for all-to-all, hierarchical where several nodes have the same number, above one, of members, else ring.
CollectiveAlgorithm choose_algorithm(CollectiveKind, const DeviceGroup&);

/// The steps of a ring in `passes` trips: 2 for an all-reduce, 1 for a reduce-scatter or an all-gather.
constexpr double ring_steps(int members, int passes = 2) { return double(passes) * (members - 1); }
/// What a ring moves over each route, as a share of the array. Planners whose published formula knows neither latencies
/// nor whole bytes use these two directly.
constexpr double ring_share(int members, int passes = 2) { return ring_steps(members, passes) / members; }

/// Without contention.
Seconds time_of(const Phase&, const LinkTable&);
Seconds time_of(const std::vector<Phase>&, const LinkTable&);

}  // namespace stagecraft
