#pragma once

#include <span>
#include <vector>

#include "backends/simgrid/engine/compat.hpp"
#include "backends/simgrid/engine/layout.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::sg {

/// The two hosts of a route; null when the device talks to itself.
struct HostPair {
  s4u::Host* from = nullptr;
  s4u::Host* to = nullptr;
};

/// The route of a device's ops to memory that it shares: a separate link, which limits their rate, and the link of
/// the memory. (SimGrid 3.32 ignores the highest rate of a single transfer between hosts.)
struct Pace {
  HostPair ends;
  s4u::Link* link = nullptr;
};

struct Platform {
  std::vector<HostPair> ends;                       ///< Indexed like Program::routes.
  IdVector<DeviceId, Pace> paces;                   ///< Null where memory is not shared.
  IdVector<LinkId, std::vector<s4u::Link*>> links;  ///< One or two SimGrid links; none if it is not used.
};

/// Builds and seals the platform, and reads every route back: throws InternalError when SimGrid's links, bandwidths or
/// latencies differ from `routes`.
Platform build_platform(s4u::Engine& engine, const Layout& layout, const Program& program, const Cluster& cluster,
                        std::span<const Route> routes);

/// Whether the variable STAGECRAFT_SIMGRID_MODEL is LV08: SimGrid's model of TCP (Velho and Legrand, 2009) with its own
/// latencies, windows and reverse traffic. InputError if it has another value.
bool is_lv08_asked();

/// The one engine that this process can have, set up for plain max-min sharing or for LV08. Never destroyed: the
/// process ends with the simulation, and large platforms take long to take apart.
s4u::Engine& make_engine(bool lv08 = false);

}  // namespace stagecraft::sg
