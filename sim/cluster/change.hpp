#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/ids.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

struct Cluster;

inline constexpr double kForEver = kInfinity;

/// Devices or links that are less than rated for a while. What Change means is said in conditions.hpp.
struct Change {
  std::vector<DeviceId> devices;
  std::vector<LinkId> links;
  Seconds from, until{kForEver};
  Seconds every, lasts;  ///< Not zero: only the first `lasts` of each `every`, counted from `from`.
  double rate = 1;       ///< Of the rated speed of devices, or the bandwidth of links; never more than 1.
  double latency = 1;    ///< Of links: times that of the link; never less than 1.
  bool down = false;     ///< Nothing is done; a device loses the op it is at.

  friend bool operator==(const Change&, const Change&) = default;
};

/// Every op takes its time times a factor of its own, drawn evenly from 1 to 1 + most.
struct Jitter {
  double most = 0;
  std::uint64_t seed = 1;

  friend bool operator==(const Jitter&, const Jitter&) = default;
};

/// "gpu3 at 50 % from 2 s to 5 s"; of many devices or links the first few.
std::string to_text(const Change&, const Cluster&);

}  // namespace stagecraft
