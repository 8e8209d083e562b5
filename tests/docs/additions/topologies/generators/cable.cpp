#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

const config::MapSpec fields{"Two equal devices on one link.",
                             {type_field(), link_field("link", "Between them."), types_field()}};

Cluster build(const config::Value& map) {
  ClusterWriter writer(map);
  const DeviceTypeId type = writer.type(map.at("type"), "type", "device");
  const VertexId a = writer.add_device("a", type, "a"), b = writer.add_device("b", type, "b");
  writer.connect("cable", writer.link(map.at("link"), "link"), {a, b});
  return writer.finish();
}

}  // namespace

extern const TopologyGenerator cable{
    .name = "cable",
    .summary = "Two equal devices on one link.",
    .source = "an example",
    .fields = &fields,
    .build = build,
};

}  // namespace stagecraft::topology_generators
