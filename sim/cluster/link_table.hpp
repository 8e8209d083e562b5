#pragma once

#include <optional>

#include "sim/cluster/cluster.hpp"

namespace stagecraft {

/// What a message between two devices meets when no other is in its way.
struct LinkRate {
  Seconds latency;
  Bandwidth bandwidth;
};

/// The one source of bandwidth, latency and message time between devices, when everything is as rated. It finds a route
/// when it is asked and stores no pairs, of which 16,384 devices have 268 million. One table is not for several threads
/// at once, and the cluster must outlive it.
class LinkTable {
 public:
  explicit LinkTable(const Cluster& cluster) : router_(cluster) {}

  /// Infeasible when no path leads from one to the other. A device reaches itself at once.
  LinkRate link(DeviceId from, DeviceId to) const;
  std::optional<LinkRate> find(DeviceId from, DeviceId to) const;  ///< Nothing when no path leads there.
  Bandwidth bandwidth(DeviceId from, DeviceId to) const { return link(from, to).bandwidth; }
  Seconds latency(DeviceId from, DeviceId to) const { return link(from, to).latency; }
  Seconds message_time(DeviceId from, DeviceId to, Bytes size) const;

 private:
  Router router_;
};

}  // namespace stagecraft
