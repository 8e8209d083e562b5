// A torus of any number of dimensions, as IBM's Blue Gene, Fujitsu's Tofu and Google's TPU pods have it, or a mesh. The
// bisection of a torus cut across its longest dimension n has 2 N / n cables.

#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

const config::MapSpec& torus_fields() {
  static const config::MapSpec spec = [] {
    config::MapSpec derived{
        "Devices at the points of a grid, each with a router of its own.",
        {config::list("sizes", config::integer("size", 1, 1e6))
             .or_alone()
             .doc("Points in each dimension, such as [4, 4, 4]."),
         config::boolean("wrap").fallback("true").doc("Whether the ends of each dimension are joined.")}};
    for (config::Field& field : grid_fields()) derived.fields.push_back(std::move(field));
    return derived;
  }();
  return spec;
}

Cluster build_torus(const config::Value& map) {
  const config::Value& list = map.at("sizes");
  if (list.items.empty())
    throw InputError({{list.where, "sizes", "there is no dimension", "such as [4, 4, 4]", "sizes"}});
  std::vector<int> sizes;
  for (const config::Value& size : list.items) sizes.push_back(config::as_int(size));
  return grid(map, sizes, config::as_bool(map.at("wrap")));
}

}  // namespace

extern const TopologyGenerator torus{
    .name = "torus",
    .summary = "A grid of any dimensions whose ends are joined, or a mesh.",
    .source = "Jouppi et al., TPU v4, ISCA 2023",
    .fields = &torus_fields(),
    .build = build_torus,
};

}  // namespace stagecraft::topology_generators
