// Unlike devices on unlike links, all drawn from a seed: to try a planner on many clusters. The same seed draws the
// same devices, whatever the bounds of the links are.

#include <fmt/core.h>

#include "sim/core/random.hpp"
#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

using config::Dimension;
using config::Value;

const config::MapSpec& bounds_fields() {
  static const config::MapSpec spec{
      "Bounds of what is drawn.",
      {config::quantity("slowest", Dimension::Bandwidth).doc("Smallest bandwidth."),
       config::quantity("fastest", Dimension::Bandwidth).doc("Largest bandwidth."),
       config::quantity("nearest", Dimension::Time).fallback("0").doc("Smallest latency."),
       config::quantity("farthest", Dimension::Time).fallback("0").doc("Largest latency.")}};
  return spec;
}

const config::MapSpec kRandomFields{
    "Devices and links drawn from a seed.",
    {config::integer("devices", 1, 1e6).doc("Number of them."),
     config::integer("seed", 0, 2e9).fallback("1").doc("Seed of the draw."),
     config::list("kinds", type_field()).or_alone().doc("Device types to draw from, with equal probability."),
     config::text("prefix").fallback("device").doc("Name of the devices; each gets a number."),
     config::choice("network", std::vector<std::string>{"dedicated", "star"})
         .fallback("star")
         .doc("dedicated: a link for each pair; star: a link from each device to one switch."),
     config::map("link", bounds_fields()).doc("Bounds from which each link is drawn uniformly."), types_field()}};

class Links {
 public:
  Links(const Value& map, int seed, ClusterWriter& writer) : rng_(static_cast<std::uint64_t>(seed), "topology links") {
    const auto read = [&](const char* key, auto as) { return as(map.at(key)).value; };
    slowest_ = read("slowest", config::as_bandwidth), fastest_ = read("fastest", config::as_bandwidth);
    nearest_ = read("nearest", config::as_seconds), farthest_ = read("farthest", config::as_seconds);
    const auto order = [&](const char* low, const char* high, bool holds) {
      if (!holds)
        writer.problems().add(map.at(high).where, fmt::format("link.{}", high), fmt::format("it is below '{}'", low),
                              {}, "range");
    };
    order("slowest", "fastest", slowest_ <= fastest_);
    order("nearest", "farthest", nearest_ <= farthest_);
    if (!(slowest_ > 0))
      writer.problems().add(map.at("slowest").where, "link.slowest", "it has to be more than zero", {}, "range");
    if (nearest_ < 0)
      writer.problems().add(map.at("nearest").where, "link.nearest", "it may not be negative", {}, "range");
  }

  Link draw() {
    Link link;
    link.bandwidth.value = rng_.uniform(slowest_, fastest_);
    link.latency.value = rng_.uniform(nearest_, farthest_);
    return link;
  }

 private:
  Rng rng_;
  double slowest_ = 0, fastest_ = 0, nearest_ = 0, farthest_ = 0;
};

Cluster build_random(const Value& map) {
  ClusterWriter writer(map);
  const int count = config::as_int(map.at("devices")), seed = config::as_int(map.at("seed"));
  const bool star = map.at("network").text == "star";
  const std::string& prefix = map.at("prefix").text;
  Links links(map.at("link"), seed, writer);
  const Value& kinds = map.at("kinds");
  if (kinds.items.empty()) writer.problems().add(kinds.where, "kinds", "there is no device type to draw", {}, "kinds");
  std::vector<DeviceTypeId> types;
  for (std::size_t k = 0; k < kinds.items.size(); ++k)
    types.push_back(writer.type(kinds.items[k], fmt::format("kinds[{}]", k), fmt::format("kind{}", k)));
  writer.problems().throw_if_any();

  const auto name = [&](int d) { return fmt::format("{}{}", prefix, d); };
  Rng rng(static_cast<std::uint64_t>(seed), "topology devices");
  for (int d = 0; d < count; ++d)
    writer.add_device(name(d), types[rng.integer(0, static_cast<int>(types.size()) - 1)], name(d));
  if (star) {
    const VertexId hub = writer.add_switch("switch");
    for (int d = 0; d < count; ++d) writer.connect(name(d) + ".link", links.draw(), {VertexId{d}, hub});
  } else {
    for (int a = 0; a < count; ++a)
      for (int b = a + 1; b < count; ++b)
        writer.connect(fmt::format("{}-{}", name(a), name(b)), links.draw(), {VertexId{a}, VertexId{b}});
  }
  return writer.finish();
}

}  // namespace

extern const TopologyGenerator random{
    .name = "random",
    .summary = "Devices and links drawn from a seed.",
    .source = "no particular machine",
    .fields = &kRandomFields,
    .build = build_random,
};

}  // namespace stagecraft::topology_generators
