// Groups of devices that share one medium, such as a radio channel or a hub: all of them together send no faster than
// it, and each no faster than its own half-duplex adapter.

#include <fmt/core.h>

#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

using config::Dimension;

const config::MapSpec& medium_fields() {
  static const config::MapSpec spec = [] {
    config::MapSpec derived{
        "What all share.",
        {config::quantity("bandwidth", Dimension::Bandwidth).doc("Bandwidth that all transfers share."),
         config::quantity("latency", Dimension::Time).fallback("0").doc("Time from one station to another.")}};
    for (const char* name : {"efficiency", "window", "slow_start", "queue"})
      derived.fields.push_back(*link_fields().find(name));
    return derived;
  }();
  return spec;
}

const config::MapSpec& edge_lan_group_fields() {
  static const config::MapSpec spec{
      "Equal devices with equal adapters.",
      {config::text("name").doc("Name of the devices; each gets a number."), type_field(),
       config::integer("count", 1, 1e5).fallback("1").doc("Number of them."),
       config::quantity("bandwidth", Dimension::Bandwidth)
           .optional()
           .doc("Bandwidth of one adapter, which sending and receiving share. Default: the bandwidth of the medium.")}};
  return spec;
}

const config::MapSpec kEdgeLanFields{
    "Groups of devices on one shared half-duplex medium.",
    {groups_field(edge_lan_group_fields()), config::map("medium", medium_fields()).doc("The radio channel or the hub."),
     types_field()}};

Cluster build_edge_lan(const config::Value& map) {
  ClusterWriter writer(map);
  Link medium = writer.link(map.at("medium"), "medium");
  medium.duplex = Duplex::Half;
  const config::Value& groups = map.at("groups");
  std::vector<Link> adapters;
  for (std::size_t g = 0; g < groups.items.size(); ++g) {
    const config::Value& group = groups.items[g];
    const std::string path = fmt::format("groups[{}]", g), &name = group.at("name").text;
    const DeviceTypeId type = writer.type(group.at("type"), path + ".type", name);
    Link adapter{.name = {}, .bandwidth = medium.bandwidth, .latency = {}, .duplex = Duplex::Half, .ends = {}};
    adapter.one_queue = medium.one_queue;
    if (group.has("bandwidth")) adapter.bandwidth = writer.link(group, path).bandwidth * medium.efficiency;
    const int count = config::as_int(group.at("count"));
    writer.add_group(name, type, count);
    adapters.insert(adapters.end(), count, adapter);
  }
  std::vector<VertexId> stations;
  for (std::size_t d = 0; d < adapters.size(); ++d) {
    const std::string name = writer.cluster().devices[DeviceId{d}].name;
    stations.push_back(writer.add_switch(name + ".adapter"));
    writer.connect(name + ".link", adapters[d], {VertexId{d}, stations.back()});
  }
  if (stations.size() > 1) writer.connect("medium", medium, stations);
  return writer.finish();
}

}  // namespace

extern const TopologyGenerator edge_lan{
    .name = "edge_lan",
    .summary = "Groups of devices on one shared half-duplex medium, each with its own adapter.",
    .source = "wireless or hubbed LAN",
    .fields = &kEdgeLanFields,
    .build = build_edge_lan,
};

}  // namespace stagecraft::topology_generators
