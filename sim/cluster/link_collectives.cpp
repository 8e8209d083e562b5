#include "sim/cluster/link_collectives.hpp"

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {

LinkCollectives::LinkCollectives(std::shared_ptr<const Cluster> cluster)
    : cluster_(std::move(cluster)), links_(*cluster_) {}

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
