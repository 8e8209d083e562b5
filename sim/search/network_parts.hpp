#pragma once

#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"

namespace stagecraft {

/// The parts of a network that its slowest links separate: sites, or the nodes of one site.
class NetworkParts {
 public:
  explicit NetworkParts(const Cluster&);

  /// "a100-80 and h100-sxm in 1 of 2 parts of the network": the types of these devices and, where there are parts, how
  /// many of them they are in.
  std::string device_text(const std::vector<DeviceId>&) const;
  /// "parts of the network: devices with more than 1.25 GB/s between them"; empty where there are none.
  std::string explanation() const;
  /// The devices of each part, without parts that have the same types and links as one before; empty where there are no
  /// parts. Of links, only those between consecutive devices are compared.
  std::vector<std::vector<DeviceId>> different_parts() const;

 private:
  const Cluster& cluster_;
  IdVector<DeviceId, int> part_;  ///< The part of each device; empty where there are no parts.
  int count_ = 1;
  Bandwidth slowest_{};
};

}  // namespace stagecraft
