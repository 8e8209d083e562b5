// The time of a collective as one formula with constants of the device type, without routes; CostRules::price() takes
// it where nothing was measured and the links do not set the price.

#include "sim/cluster/collective_cost.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cluster/phases.hpp"

namespace stagecraft {

Seconds collective_time(CollectiveKind kind, const GroupShape& group, Bytes bytes, const CollectiveConstants& constants,
                        Bandwidth card) {
  if (group.ranks <= 1 || bytes.value <= 0) return {};
  const int trips = kind == CollectiveKind::AllReduce ? 2 : 1;
  const Bytes moved = ring_share(group.ranks, trips) * bytes;
  const Seconds start = trips / 2.0 * (constants.alpha + (group.local() - 1) * constants.hop);
  const Bandwidth bus = constants.bus_of(group.local());
  const Seconds inside = start + moved / bus + Seconds{trips / 2.0 * constants.root * std::sqrt(bytes.value)};
  if (group.nodes() == 1) return inside;

  const Bandwidth sustained = kCardShare * card;
  const int nodes = group.nodes();
  if (kind == CollectiveKind::AllToAll)
    return std::max(inside, ring_share(nodes, 1) * bytes / sustained + 2 * kNodeLatency);
  const Bandwidth rate = std::min(bus, group.local() * sustained);
  return moved / rate + start + trips * nodes * kNodeLatency;
}

}  // namespace stagecraft
