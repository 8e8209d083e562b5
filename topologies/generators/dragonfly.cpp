// Groups of routers: every two routers of a group are joined, and every two groups by global cables, which are dealt
// out to the routers of a group in turn. A route takes at most one local, one global and one local cable between
// routers. Kim et al., Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008.

#include <fmt/core.h>

#include <cstdint>

#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

const config::MapSpec kDragonflyFields{
    "Groups of routers that are all joined, and joined groups.",
    {config::integer("groups", 1, 1e5).doc("Number of them."),
     config::integer("routers", 1, 1e5).doc("Routers of one group."),
     config::integer("devices", 1, 1e6).doc("Devices of one router."),
     config::integer("cables", 1, 1e5).fallback("1").doc("Global cables between every two groups."), type_field(),
     config::text("prefix").fallback("gpu").doc("Name of the devices; each gets a number."),
     link_field("link", "Link from each device to its router."),
     link_field("local", "Links between routers of one group."), link_field("global", "Links between groups."),
     types_field()}};

Cluster build_dragonfly(const config::Value& map) {
  ClusterWriter writer(map);
  const int groups = config::as_int(map.at("groups")), routers = config::as_int(map.at("routers"));
  const int each = config::as_int(map.at("devices")), cables = config::as_int(map.at("cables"));
  const int devices = writer.count({groups, routers, each});
  const Link link = writer.link(map.at("link"), "link"), local = writer.link(map.at("local"), "local");
  Link global = writer.link(map.at("global"), "global");
  global.length = 3;
  const std::string& prefix = map.at("prefix").text;
  const DeviceTypeId type = writer.type(map.at("type"), "type", prefix);
  writer.problems().throw_if_any();

  for (int d = 0; d < devices; ++d) {
    const std::string name = fmt::format("{}{}", prefix, d);
    writer.add_device(name, type, name);
  }
  for (int r = 0; r < groups * routers; ++r)
    writer.add_switch(fmt::format("group{}.router{}", r / routers, r % routers));
  const auto router = [&](int group, int number) { return writer.cluster().switch_vertex(group * routers + number); };
  const auto join = [&](const Link& kind, VertexId a, VertexId b, const std::string& more) {
    writer.connect(writer.cluster().vertex_name(a) + "-" + writer.cluster().vertex_name(b) + more, kind, {a, b});
  };

  for (int d = 0; d < devices; ++d)
    writer.connect(fmt::format("{}{}.link", prefix, d), link, {VertexId{d}, writer.cluster().switch_vertex(d / each)});
  for (int g = 0; g < groups; ++g)
    for (int r = 0; r < routers; ++r)
      for (int s = r + 1; s < routers; ++s) join(local, router(g, r), router(g, s), "");
  // Cable c from g to h is number c (groups - 1) + h - 1 in g, and number c (groups - 1) + g in h, where g < h.
  for (int c = 0; c < cables; ++c)
    for (int g = 0; g < groups; ++g)
      for (int h = g + 1; h < groups; ++h) {
        const std::int64_t first = std::int64_t{c} * (groups - 1);
        join(global, router(g, static_cast<int>((first + h - 1) % routers)),
             router(h, static_cast<int>((first + g) % routers)), c == 0 ? "" : fmt::format(".{}", c));
      }
  writer.take_turns();
  return writer.finish();
}

}  // namespace

extern const TopologyGenerator dragonfly{
    .name = "dragonfly",
    .summary = "A dragonfly: groups of connected routers, and cables between every two groups.",
    .source = "Kim et al., ISCA 2008",
    .fields = &kDragonflyFields,
    .build = build_dragonfly,
};

}  // namespace stagecraft::topology_generators
