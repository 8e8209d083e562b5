#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/ids.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/quantity.hpp"

// How a cluster changes while a program runs, as values: slow devices and links, failures, jitter. `conditions`
// gives their effect to simulators.

namespace stagecraft {

struct Cluster;

inline constexpr double kForEver = kInfinity;

/// A temporary slowdown or failure of devices or links. conditions.hpp defines its effect.
struct Change {
  std::vector<DeviceId> devices;
  std::vector<LinkId> links;
  Seconds from, until{kForEver};
  Seconds every, lasts;  ///< Not zero: only the first `lasts` of each `every`, counted from `from`.
  double rate = 1;       ///< Share of the rated speed of devices, or of the bandwidth of links; never more than 1.
  double latency = 1;    ///< Factor on the latency of links; never less than 1.
  bool down = false;     ///< Devices and links do nothing; a device loses the op that it runs.

  friend bool operator==(const Change&, const Change&) = default;
};

/// Each op takes longer by its own random factor, uniform between 1 and 1 + max_fraction.
struct Jitter {
  double max_fraction = 0;
  std::uint64_t seed = 1;

  friend bool operator==(const Jitter&, const Jitter&) = default;
};

/// "gpu3 at 50 % from 2 s to 5 s"; names only the first few of many devices or links.
std::string to_text(const Change&, const Cluster&);

}  // namespace stagecraft
