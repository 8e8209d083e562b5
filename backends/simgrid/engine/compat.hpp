#pragma once

// The one place that knows versions of SimGrid: 3.32 (Debian 12) and 4.x. It is heavy: include it in few files.
#include <simgrid/s4u.hpp>  // first: version.h does not stand alone

#include <simgrid/version.h>
#include <simgrid/kernel/Timer.hpp>

#include <string>
#include <vector>

namespace stagecraft::sg {

namespace s4u = ::simgrid::s4u;
using ::simgrid::kernel::timer::Timer;

#define STAGECRAFT_SIMGRID_4 (SIMGRID_VERSION >= 40000)

/// Starts a transfer that depends on nothing.
inline void start_activity(const s4u::CommPtr& comm) {
#if STAGECRAFT_SIMGRID_4
  comm->start();
#else
  comm->vetoable_start();
#endif
}

/// Calls `f(const s4u::Activity&)` at the end of every transfer. For as long as the process lives.
template <class F>
void on_transfer_end(F f) {
#if STAGECRAFT_SIMGRID_4
  s4u::Comm::on_completion_cb([f](const s4u::Comm& comm) { f(comm); });
#else
  s4u::Activity::on_completion_cb([f](const s4u::Activity& activity) { f(activity); });
#endif
}

inline s4u::NetZone* add_star(s4u::Engine& engine, const std::string& name) {
#if STAGECRAFT_SIMGRID_4
  return engine.get_netzone_root()->add_netzone_star(name);
#else
  static_cast<void>(engine);  // the first zone becomes the root
  return s4u::create_star_zone(name);
#endif
}

inline s4u::Host* add_host(s4u::NetZone* zone, const std::string& name) {
  const double speed = 1e9;  // never used: computation is not SimGrid's business
#if STAGECRAFT_SIMGRID_4
  return zone->add_host(name, speed);
#else
  return zone->create_host(name, speed);
#endif
}

inline s4u::Link* add_link(s4u::NetZone* zone, const std::string& name, double bandwidth) {
#if STAGECRAFT_SIMGRID_4
  return zone->add_link(name, bandwidth);
#else
  return zone->create_link(name, bandwidth);
#endif
}

inline s4u::SplitDuplexLink* add_split_duplex_link(s4u::NetZone* zone, const std::string& name, double bandwidth) {
#if STAGECRAFT_SIMGRID_4
  return zone->add_split_duplex_link(name, bandwidth, bandwidth);
#else
  return zone->create_split_duplex_link(name, bandwidth);
#endif
}

/// The way between a host and the middle of a star, both ways round.
inline void add_way_up(s4u::NetZone* star, s4u::Host* host, const std::vector<s4u::LinkInRoute>& links) {
#if STAGECRAFT_SIMGRID_4
  star->add_route(host, nullptr, links, true);
#else
  star->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, links, true);
#endif
}

inline void add_bypass(s4u::NetZone* zone, s4u::Host* from, s4u::Host* to, const std::vector<s4u::LinkInRoute>& links) {
  zone->add_bypass_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, links);
}

#undef STAGECRAFT_SIMGRID_4

}  // namespace stagecraft::sg
