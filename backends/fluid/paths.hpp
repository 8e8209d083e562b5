#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/cluster/cluster.hpp"

namespace stagecraft::fluid {

/// What transfers compete for, and what each route crosses of it. A channel is what has one bandwidth to divide: a
/// direction of a full-duplex link, or all of a half-duplex link or shared medium. Unshared links are no channels.
struct Paths {
  std::vector<double> capacity;  ///< Of each channel, in bytes per second.
  std::vector<double> alone;     ///< Of each route: the rate of a transfer that meets no other.
  std::vector<std::uint32_t> first;
  std::vector<std::int32_t> crossed;  ///< Channels of route r: crossed[first[r] .. first[r + 1]).

  std::span<const std::int32_t> channels_of(std::int32_t route) const {
    const auto r = static_cast<std::size_t>(route);
    return {crossed.data() + first[r], crossed.data() + first[r + 1]};
  }
};

Paths paths_of(const Cluster& cluster, std::span<const Route> routes);
/// `paths` when each link has the bandwidth given for it.
void set_bandwidths(Paths& paths, std::span<const double> bandwidths, std::span<const Route> routes);

}  // namespace stagecraft::fluid
