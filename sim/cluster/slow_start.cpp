// How much longer the first message of a TCP connection takes than later ones; sim/program/connections.cpp asks.

#include "sim/cluster/slow_start.hpp"

namespace stagecraft {

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
