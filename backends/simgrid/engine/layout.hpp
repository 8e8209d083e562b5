#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::sg {

/// What of a Cluster a Program needs, laid out as one flat star: every device has a way up to one core switch, and a
/// pair whose route is not "up, then down", or has a window, gets a separate route. (Nested zones would be closer to
/// the picture, but SimGrid builds them in quadratic time.)
struct Layout {
  struct Host {
    DeviceId device;
    std::vector<Hop> up;  ///< To the core switch; empty when no route of this device passes there.
  };
  std::vector<Host> hosts;               ///< Devices that talk to another one, by number.
  std::vector<LinkId> links;             ///< Links on the routes, by number.
  std::vector<std::int32_t> exceptions;  ///< Indices into Program::routes, one for each pair that leaves the star.
  std::vector<DeviceId> sharers;         ///< Devices that share their memory with others.
};

/// `routes` come from des::routes_of. O(hops * log(routes)).
Layout build_layout(const Program& program, const Cluster& cluster, std::span<const Route> routes);

}  // namespace stagecraft::sg
