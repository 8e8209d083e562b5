#pragma once

#include <optional>
#include <string>

#include "sim/config/value.hpp"

namespace stagecraft {

/// A cluster of the library in another size, as its name says it: "superpod-b200-256" has 256 devices, and
/// "dgx-h200-x4" has four nodes.
struct SizedCluster {
  std::string base;  ///< The cluster of the library.
  int count = 0;     ///< Devices or nodes.
  bool counts_nodes = false;
};

/// Nothing for a name without a size, or with a stem that no cluster of the library has.
std::optional<SizedCluster> sized_cluster(const std::string& name);

/// Devices of each node of a cluster, as a map of the fields of its generator. 0: it has no equal nodes, so its size is
/// no number of nodes.
int devices_of_each_node(const config::Value& cluster);

}  // namespace stagecraft
