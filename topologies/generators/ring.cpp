// Devices in a circle, each joined to two neighbors. Traffic takes the shorter direction, through the routers of other
// devices.

#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

const config::MapSpec& ring_fields() {
  static const config::MapSpec spec = [] {
    config::MapSpec derived{"Devices in a circle, each with a router of its own.",
                            {config::integer("devices", 1, 1e6).doc("Number of them.")}};
    for (config::Field& field : grid_fields()) derived.fields.push_back(std::move(field));
    return derived;
  }();
  return spec;
}

Cluster build_ring(const config::Value& map) { return grid(map, {config::as_int(map.at("devices"))}, true); }

}  // namespace

extern const TopologyGenerator ring{
    .name = "ring",
    .summary = "Devices in a circle, each joined to two neighbors.",
    .source = "no particular machine",
    .fields = &ring_fields(),
    .build = build_ring,
};

}  // namespace stagecraft::topology_generators
