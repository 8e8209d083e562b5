// Groups of devices around one switch: a laboratory's LAN, edge devices on one access point with a wired backbone.

#include <fmt/core.h>

#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

const config::MapSpec& star_group_fields() {
  static const config::MapSpec spec{
      "Equal devices on equal links.",
      {config::text("name").doc("Name of the devices; each gets a number."), type_field(),
       config::integer("count", 1, 1e6).fallback("1").doc("Number of them."),
       config::text("link").fallback("link").doc("Entry of `links`: the link from each device to the switch.")}};
  return spec;
}

const config::MapSpec kStarFields{"Groups of devices around one switch, one link each.",
                                  {groups_field(star_group_fields()), links_field(), types_field()}};

Cluster build_star(const config::Value& map) {
  ClusterWriter writer(map);
  const config::Value& groups = map.at("groups");
  std::vector<Link> link_of_device;
  for (std::size_t g = 0; g < groups.items.size(); ++g) {
    const config::Value& group = groups.items[g];
    const std::string path = fmt::format("groups[{}]", g), &name = group.at("name").text;
    const DeviceTypeId type = writer.type(group.at("type"), path + ".type", name);
    const Link kind = writer.link_kind(group.at("link").text, group.at("link"), path + ".link");
    const int count = config::as_int(group.at("count"));
    writer.add_group(name, type, count);
    link_of_device.insert(link_of_device.end(), count, kind);
  }
  const VertexId hub = writer.add_switch("switch");
  for (std::size_t d = 0; d < link_of_device.size(); ++d)
    writer.connect(writer.cluster().devices[DeviceId{d}].name + ".link", link_of_device[d], {VertexId{d}, hub});
  return writer.finish();
}

}  // namespace

extern const TopologyGenerator star{
    .name = "star",
    .summary = "Groups of devices around one switch, one link each.",
    .source = "no particular machine",
    .fields = &kStarFields,
    .build = build_star,
};

}  // namespace stagecraft::topology_generators
