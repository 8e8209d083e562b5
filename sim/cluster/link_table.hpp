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

/// Ten packets of 1448 bytes: RFC 6928, with the payload that a packet has at an MTU of 1500 with time stamps.
inline constexpr double kInitialWindow = 14480;

/// How much longer the first message of a TCP connection takes on an idle route than a later one. The window starts
/// with kInitialWindow and doubles each round trip T, which is twice the latency of the route. As long as it is less
/// than the rate R times T, and bytes are left, the sender waits for acknowledgements: T - window / R each round trip
/// (Kurose and Ross, Computer Networking, 3.7, "TCP latency modeling"). Zero where no link of the route has slow start.
Seconds slow_start_delay(const Route& route, Bytes bytes);

}  // namespace stagecraft
