#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "sim/cluster/collective_cost.hpp"
#include "sim/cluster/phases.hpp"

namespace stagecraft {

/// A time that no collective of a kind among certain groups is shorter than, whatever its algorithm and its constants.
struct LinkFloor {
  double seconds_per_byte = 0;
  Seconds latency{};  ///< The longest way between two neighbors has it.

  Seconds time(Bytes bytes) const {
    return bytes.value > 0 ? latency + Seconds{seconds_per_byte * bytes.value} : Seconds{};
  }
};

/// Times of collectives by the latency and the bandwidth of the links alone: the phases of phases_of(), one after
/// another, on an idle network. Groups stand on the first devices of the cluster, as GroupShape::place() says, and
/// stand for all others of their shape. Threads may share one.
class LinkCollectives {
 public:
  explicit LinkCollectives(std::shared_ptr<const Cluster>);

  /// InputError where the cluster has fewer devices than the group spans.
  Seconds time(CollectiveKind, const GroupShape&, Bytes) const;
  /// As a ring whatever the nodes, as sums of gradients run.
  Seconds ring_time(CollectiveKind, const GroupShape&, Bytes) const;
  /// An all-reduce as a ring of these devices.
  Seconds ring_time(const std::vector<DeviceId>&, Bytes) const;
  /// One message on an idle network.
  Seconds message_time(DeviceId from, DeviceId to, Bytes) const;
  /// The floor of collectives of these groups at once: what they carry over the busiest link between nodes, at the rate
  /// of that link. The members of a node share its ways out, as NCCL's channels do. Zero for groups inside nodes. As a
  /// ring of all members, or as algorithms do that send each byte once to each other node.
  enum class Carried { AsRing, OncePerNode };
  LinkFloor floor(CollectiveKind, const std::vector<std::vector<DeviceId>>& groups, Carried) const;

 private:
  using Key = std::tuple<bool, CollectiveKind, int, std::array<int, 4>, std::uint64_t>;
  Seconds time(bool ring, CollectiveKind, const GroupShape&, Bytes) const;

  std::shared_ptr<const Cluster> cluster_;
  std::vector<int> node_of_;  ///< [device]
  LinkTable links_;
  Router router_;
  mutable std::mutex mutex_;  ///< Guards `links_` and `router_`, which cache routes, and `known_`.
  mutable std::map<Key, Seconds> known_;
};

}  // namespace stagecraft
