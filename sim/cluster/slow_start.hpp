#pragma once

#include "sim/cluster/cluster.hpp"

namespace stagecraft {

/// Ten packets of 1448 bytes: RFC 6928, with the payload that a packet has at an MTU of 1500 with time stamps.
inline constexpr double kInitialWindow = 14480;

/// How much longer the first message of a TCP connection takes on an idle route than a later one. The window starts
/// with kInitialWindow and doubles each round trip T, which is twice the latency of the route. As long as it is less
/// than the rate R times T, and bytes are left, the sender waits for acknowledgements: T - window / R each round trip
/// (Kurose and Ross, Computer Networking, 3.7, "TCP latency modeling"). Zero where no link of the route has slow start.
Seconds slow_start_delay(const Route& route, Bytes bytes);

}  // namespace stagecraft
