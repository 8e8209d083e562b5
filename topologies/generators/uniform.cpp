// Equal devices, all at the same distance. A dedicated network has a link for each pair, so that transfers between
// different pairs never meet; a star has one link for each device, where they do.

#include <fmt/core.h>

#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

constexpr int kLargestMesh = 2048;  // Above it the links alone would need gigabytes.

const config::MapSpec kUniformFields{
    "Equal devices, each pair at the same distance.",
    {config::integer("devices", 1, 1e6).doc("Number of devices."), type_field(),
     config::text("prefix").fallback("gpu").doc("Name of the devices; each gets a number."),
     config::choice("network", std::vector<std::string>{"dedicated", "star"})
         .fallback("dedicated")
         .doc("dedicated: a link for each pair; star: a link from each device to one switch."),
     config::map("link", link_fields()).doc("Every link of the network."), types_field()}};

Cluster build_uniform(const config::Value& map) {
  ClusterWriter writer(map);
  const int count = config::as_int(map.at("devices"));
  const bool star = map.at("network").text == "star";
  const Link kind = writer.link(map.at("link"), "link");
  const std::string& prefix = map.at("prefix").text;
  if (!star && count > kLargestMesh)
    writer.problems().add(map.at("devices").where, "devices",
                          fmt::format("{} devices are too many for a link between each pair", count),
                          fmt::format("network: star, or at most {} devices", kLargestMesh), "too-many");
  const DeviceTypeId type = writer.type(map.at("type"), "type", prefix);
  writer.problems().throw_if_any();

  for (int i = 0; i < count; ++i) {
    const std::string name = fmt::format("{}{}", prefix, i);
    writer.add_device(name, type, name);
  }
  if (star) {
    const VertexId hub = writer.add_switch("switch");
    for (int i = 0; i < count; ++i) writer.connect(fmt::format("{}{}.link", prefix, i), kind, {VertexId{i}, hub});
  } else {
    for (int i = 0; i < count; ++i)
      for (int j = i + 1; j < count; ++j)
        writer.connect(fmt::format("{0}{1}-{0}{2}", prefix, i, j), kind, {VertexId{i}, VertexId{j}});
  }
  return writer.finish();
}

}  // namespace

extern const TopologyGenerator uniform{
    .name = "uniform",
    .summary = "Equal devices with a link for each pair, or around one switch.",
    .source = "no particular machine",
    .fields = &kUniformFields,
    .build = build_uniform,
};

}  // namespace stagecraft::topology_generators
