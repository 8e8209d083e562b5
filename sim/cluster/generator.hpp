#pragma once

#include <string_view>

#include "sim/cluster/cluster.hpp"
#include "sim/config/fields.hpp"
#include "sim/core/catalog.hpp"

namespace stagecraft {

/// One way to make a cluster: one file in topologies/generators/.
struct TopologyGenerator {
  std::string_view name, summary, source;
  const config::MapSpec* fields;           ///< Its parameters in `cluster:`.
  Cluster (*build)(const config::Value&);  ///< Gets the checked map.
};

namespace topology_generators {
Catalog<TopologyGenerator> catalog();
}

/// The fields of a device type and of a link, shared by every generator.
const config::MapSpec& device_type_fields();
const config::MapSpec& link_fields();
/// Reads a checked map of those fields; `name` is the key it was written under, and `path` where messages say it is.
DeviceType read_device_type(const config::Value&, const std::string& name, const std::string& path);
Link read_link(const config::Value&, const std::string& name);

}  // namespace stagecraft
