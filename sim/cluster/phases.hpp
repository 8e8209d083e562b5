#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/cluster/link_table.hpp"
#include "sim/core/catalog.hpp"
#include "sim/core/parallel.hpp"

namespace stagecraft {

/// The devices of a collective in the order of their ranks, and the node of each. Without nodes all are on one.
struct DeviceGroup {
  std::vector<DeviceId> devices;
  std::vector<int> nodes = {};
};

DeviceGroup group_of(std::vector<DeviceId> devices, const Cluster&);

/// One that is not valid is the memory of the other one's host.
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

class PhaseWriter;

/// One way to run collectives: one file in sim/cluster/collective_algorithms/, with its formulas. No other code has
/// formulas of collectives.
struct CollectiveAlgorithm {
  std::string_view name, summary, source;
  void (*write)(CollectiveKind, PhaseWriter&);  ///< Writes the phases, or refuses the kind or the group.
};

namespace collective_algorithms {
Catalog<CollectiveAlgorithm> catalog();
extern const CollectiveAlgorithm ring, tree, hierarchical, direct, nvls;  ///< The entries that code names.
}  // namespace collective_algorithms

/// The phases of a collective, one after another.
///
/// `bytes` counts the whole array, as nccl-tests does: what each member contributes to a sum, the gathered array of an
/// all-gather, and what each member sends in total, to itself too, in an all-to-all of equal parts. Where experts do
/// not get equally many tokens, the fullest part decides: multiply by maximum over mean. A group of one has no phases,
/// whatever the algorithm.
///
/// InputError when the algorithm does not serve the kind, or the group.
std::vector<Phase> phases_of(CollectiveKind, const CollectiveAlgorithm&, const DeviceGroup&, std::uint64_t bytes);

/// Direct for all-to-all, hierarchical where several nodes have the same number, above one, of members, else ring.
const CollectiveAlgorithm& choose_algorithm(CollectiveKind, const DeviceGroup&);
/// One for several groups of the same size: what each of them would get, or ring where they differ.
const CollectiveAlgorithm& choose_algorithm(CollectiveKind, const std::vector<DeviceGroup>&);

/// The collectives of several groups of the same size that run at the same time, as one: each phase has the routes of
/// all groups.
std::vector<Phase> phases_of(CollectiveKind, const CollectiveAlgorithm&, const std::vector<DeviceGroup>&,
                             std::uint64_t bytes);

/// The steps of a ring in `passes` trips: 2 for an all-reduce, 1 for a reduce-scatter or an all-gather.
constexpr double ring_steps(int members, int passes = 2) { return double(passes) * (members - 1); }
/// What a ring moves over each route, as a share of the array. Planners whose published formula knows neither latencies
/// nor whole bytes use these two directly.
constexpr double ring_share(int members, int passes = 2) { return ring_steps(members, passes) / members; }

/// Without contention.
Seconds time_of(const Phase&, const LinkTable&);
Seconds time_of(const std::vector<Phase>&, const LinkTable&);

}  // namespace stagecraft
