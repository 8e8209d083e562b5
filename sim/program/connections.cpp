// What slow start adds to the first transfer of each TCP connection of a program; simulators add it.

#include "sim/program/connections.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/cluster/link_table.hpp"

namespace stagecraft {

std::vector<double> slow_start_delays(const Program& program, std::span<const Route> routes) {
  if (std::none_of(routes.begin(), routes.end(), [](const Route& route) { return route.slow_start; })) return {};
  std::vector<double> delays(program.transfers.size(), 0);
  std::set<std::pair<StreamId, std::int32_t>> open;  // A stream and a route; what is in no stream shares one.
  for (const Instruction& i : program.instructions) {
    if (i.kind != InstructionKind::Send) continue;
    const TransferShape& shape = program.shape(i);
    if (!open.emplace(i.stream, shape.route).second) continue;
    delays[i.transfer()] = slow_start_delay(routes[shape.route], Bytes{static_cast<double>(shape.bytes)}).value;
  }
  return delays;
}

}  // namespace stagecraft
