#include "topologies/grid.hpp"

#include <fmt/format.h>

namespace stagecraft {

std::vector<config::Field> grid_fields() {
  return {
      type_field(), config::text("prefix").fallback("chip").doc("Devices are called this and their number."),
      link_field("link", "Every cable between neighbours."),
      link_field("port", "Between a device and its router; left out: as fast as a cable for every transfer, at once.")
          .optional(),
      types_field()};
}

Cluster grid(const config::Value& map, const std::vector<int>& sizes, bool wrap) {
  ClusterWriter writer(map);
  const int points = writer.count(sizes);
  const Link cable = writer.link(map.at("link"), "link");
  Link port{.name = {}, .bandwidth = cable.bandwidth, .latency = {}, .duplex = Duplex::Unshared, .ends = {}};
  if (const config::Value* own = map.find("port")) port = writer.link(*own, "port");
  const std::string& prefix = map.at("prefix").text;
  const int type = writer.type(map.at("type"), "type", prefix);
  writer.problems().throw_if_any();

  const auto name = [&](int i) { return fmt::format("{}{}", prefix, i); };
  for (int i = 0; i < points; ++i) writer.add_device(name(i), type, name(i));
  for (int i = 0; i < points; ++i)
    writer.connect(name(i) + ".port", port, {VertexId{i}, writer.add_switch(name(i) + ".router")});
  // Cables of the first dimension are declared first, so that routes prefer it.
  int stride = points;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    stride /= sizes[d];
    for (int i = 0; i < points; ++i) {
      const int at = i / stride % sizes[d];
      const bool last = at == sizes[d] - 1;
      if (last && (!wrap || sizes[d] <= 2)) continue;  // Two points need one cable.
      const int next = last ? i - at * stride : i + stride;
      writer.connect(fmt::format("{}-{}", name(i), name(next)), cable,
                     {writer.cluster().switch_vertex(i), writer.cluster().switch_vertex(next)});
    }
  }
  return writer.finish();
}

}  // namespace stagecraft
