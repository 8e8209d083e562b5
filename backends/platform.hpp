#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stagecraft {

/// What SimGrid makes of a platform file: hosts, links, and the way between every two hosts.
struct Platform {
  struct Host {
    std::string name;
    double speed = 0;  ///< FLOP/s of one core.
    int cores = 1;
    std::map<std::string, std::string> properties;
  };
  enum class Sharing : std::uint8_t { Shared, Fatpipe, Other };
  struct Link {
    std::string name;
    double bandwidth = 0, latency = 0;
    Sharing sharing = Sharing::Shared;
  };

  std::vector<Host> hosts;
  std::vector<Link> links;                        ///< Links that at least one route crosses.
  std::vector<std::vector<std::int32_t>> routes;  ///< From host a to host b: routes[a * hosts + b], as links in order.

  const std::vector<std::int32_t>& route(std::size_t from, std::size_t to) const {
    return routes[from * hosts.size() + to];
  }
};

/// Loads a platform file into SimGrid and reads the hosts that `wanted` names (* stands for any letters; none: all, in
/// the order of SimGrid's names), at most `max_hosts`. InputError with the place where the file has one; BackendError
/// where this is built without SimGrid.
Platform read_simgrid_platform(const std::string& file, const std::vector<std::string>& wanted, std::size_t max_hosts);

}  // namespace stagecraft
