// Bandwidth, latency and message time between two devices on an idle network, which planners and costs ask, and how
// much longer the first message of a TCP connection takes, which sim/program/connections.cpp asks.

#include "sim/cluster/link_table.hpp"

namespace stagecraft {

LinkRate LinkTable::link(DeviceId from, DeviceId to) const {
  const Route route = router_.require(from, to);
  return {route.latency, route.bandwidth};
}

std::optional<LinkRate> LinkTable::find(DeviceId from, DeviceId to) const {
  const std::optional<Route> route = router_.route(from, to);
  return route ? std::optional(LinkRate{route->latency, route->bandwidth}) : std::nullopt;
}

Seconds LinkTable::message_time(DeviceId from, DeviceId to, Bytes size) const {
  const LinkRate rate = link(from, to);
  return size.value > 0 ? rate.latency + size / rate.bandwidth : rate.latency;
}

Seconds slow_start_delay(const Route& route, Bytes bytes) {
  const Seconds round_trip = 2 * route.latency;
  Seconds delay;
  if (!route.slow_start) return delay;
  double left = bytes.value;
  for (double window = kInitialWindow; left > window; window *= 2) {
    const Seconds idle = round_trip - Bytes{window} / route.bandwidth;
    if (idle.value <= 0) break;
    delay += idle;
    left -= window;
  }
  return delay;
}

}  // namespace stagecraft
