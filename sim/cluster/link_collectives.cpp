// Times of collectives by their phases on idle links, and the least time that the links permit.

#include "sim/cluster/link_collectives.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sim/cluster/collective_algorithms/phase_writer.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {

LinkCollectives::LinkCollectives(std::shared_ptr<const Cluster> cluster)
    : cluster_(std::move(cluster)), node_of_(node_of(*cluster_)), links_(*cluster_), router_(*cluster_) {}

Seconds LinkCollectives::time(CollectiveKind kind, const GroupShape& group, Bytes bytes) const {
  return time(false, kind, group, bytes);
}

Seconds LinkCollectives::ring_time(CollectiveKind kind, const GroupShape& group, Bytes bytes) const {
  return time(true, kind, group, bytes);
}

Seconds LinkCollectives::ring_time(const std::vector<DeviceId>& ring, Bytes bytes) const {
  const auto whole = static_cast<std::uint64_t>(bytes.value + 0.5);
  const std::lock_guard lock(mutex_);
  return time_of(phases_of(CollectiveKind::AllReduce, collective_algorithms::ring, DeviceGroup{ring}, whole), links_);
}

Seconds LinkCollectives::message_time(DeviceId from, DeviceId to, Bytes bytes) const {
  const std::lock_guard lock(mutex_);
  return links_.message_time(from, to, bytes);
}

LinkFloor LinkCollectives::floor(CollectiveKind kind, const std::vector<std::vector<DeviceId>>& groups,
                                 Carried carried_as) const {
  // For each byte of the whole array, backward and forward.
  IdVector<LinkId, std::array<double, 2>> carried(cluster_->links.size());
  LinkFloor floor;
  const std::lock_guard lock(mutex_);
  const auto send = [&](const std::vector<DeviceId>& from, const std::vector<DeviceId>& to, double bytes) {
    const std::size_t channels = std::min(from.size(), to.size());
    for (std::size_t c = 0; c < channels; ++c) {
      const Route& route = router_.require(from[c], to[c]);
      floor.latency = std::max(floor.latency, route.latency);
      for (const Hop& hop : route.hops)
        carried[hop.link][hop.forward || cluster_->links[hop.link].duplex == Duplex::Half] +=
            bytes / static_cast<double>(channels);
    }
  };
  for (const std::vector<DeviceId>& group : groups) {
    std::vector<int> node_of_member;
    for (const DeviceId d : group) node_of_member.push_back(node_of_[d.value]);
    const std::vector<Members> nodes = members_by_node({group, std::move(node_of_member)});
    const auto ranks = static_cast<double>(group.size());
    const double parts = carried_as == Carried::AsRing ? ranks : static_cast<double>(nodes.size());
    const double trips = kind == CollectiveKind::AllReduce ? 2 : 1;
    for (std::size_t n = 0; n < nodes.size() && nodes.size() > 1; ++n) {
      if (kind != CollectiveKind::AllToAll) {
        send(nodes[n], nodes[(n + 1) % nodes.size()], trips * (parts - 1) / parts);
        continue;
      }
      for (std::size_t m = 0; m < nodes.size(); ++m)
        if (m != n) send(nodes[n], nodes[m], static_cast<double>(nodes[n].size() * nodes[m].size()) / ranks);
    }
  }
  for (const LinkId l : carried.ids()) {
    const Link& link = cluster_->links[l];
    const double bytes = std::max(carried[l][0], carried[l][1]);
    if (bytes > 0 && link.duplex != Duplex::Unshared)
      floor.seconds_per_byte = std::max(floor.seconds_per_byte, bytes / link.bandwidth.value);
  }
  return floor;
}

Seconds LinkCollectives::time(bool ring, CollectiveKind kind, const GroupShape& group, Bytes bytes) const {
  if (group.ranks <= 1 || bytes.value <= 0) return {};
  const auto whole = static_cast<std::uint64_t>(bytes.value + 0.5);
  const std::lock_guard lock(mutex_);
  const Key key{ring, kind, group.ranks, {group.stride, group.near, group.far_stride, group.step}, whole};
  if (const auto it = known_.find(key); it != known_.end()) return it->second;
  std::vector<DeviceId> devices;
  for (int rank = 0; rank < group.ranks; ++rank) devices.emplace_back(group.place(rank));
  if (devices.back().value >= std::ssize(cluster_->devices))
    throw InputError(
        fmt::format("a group of {}, the last {} places after the first, does not fit into the cluster, which has {}",
                    pluralize(group.ranks, "device"), devices.back().value,
                    pluralize(std::ssize(cluster_->devices), "device")),
        "smaller degrees, or a larger cluster");
  const DeviceGroup members = group_of(std::move(devices), *cluster_);
  const CollectiveAlgorithm& algorithm = ring ? collective_algorithms::ring : choose_algorithm(kind, members);
  return known_[key] = time_of(phases_of(kind, algorithm, members, whole), links_);
}

}  // namespace stagecraft
