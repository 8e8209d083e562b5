#pragma once

#include <cstdint>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::des {

/// The way of every pair in `program.routes`, in that order, then one hop for each link of memory that devices share.
/// A device reaches itself over no hop.
///
/// Every link that is crossed is checked, because network libraries take nonsense without a word: throws InputError
/// when a bandwidth is not above zero or a latency is negative, Infeasible when a pair is not connected. InputError
/// also when a device that shares its memory changes its speed.
std::vector<Route> routes_of(const Program& program, const Cluster& cluster);

/// Of each device, the route in routes_of() that its ops' traffic goes over; -1 where its memory is its own.
std::vector<std::int32_t> memory_routes(const Program& program, const Cluster& cluster);

/// Traffic as bytes of copies, which read and write each byte; whole ones, as networks take them.
inline std::uint64_t copied_bytes(double read_and_written) {
  return static_cast<std::uint64_t>(read_and_written / 2 + 0.5);
}

}  // namespace stagecraft::des
