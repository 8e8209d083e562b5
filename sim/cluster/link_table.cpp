// Bandwidth, latency and message time between two devices on an idle network; planners and costs ask it.

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

}  // namespace stagecraft
