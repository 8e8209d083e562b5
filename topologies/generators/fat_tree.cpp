// A fat tree of any height: the extended generalized fat tree XGFT(h; m_1..m_h; 1, w_2..w_h) of Ohring et al., IPPS
// 1995. A switch of level l has m_l cables down and w_l+1 = m_l / oversubscription up, so that
//   level l has m_l+1 ... m_h switches for each of w_1 ... w_l positions, and m_1 ... m_h devices hang on level 1;
//   two devices that part at level l are 2 l links from each other.
// Two switches of adjacent levels are joined when they agree in all positions except the one between them. Targets take
// turns on the ways up (D-mod-k), so the messages of a shift share no link in a tree without oversubscription.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/core/text.hpp"
#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

using config::Value;

const config::MapSpec kFatTreeFields{
    "Levels of switches above the devices, with any oversubscription.",
    {config::list("down", config::integer("count", 1, 1e6))
         .or_alone()
         .doc("Number of devices below a lowest-level switch, then of switches below a switch of each higher level."),
     config::list("oversubscription", config::real("ratio", 1, 1e6))
         .optional()
         .or_alone()
         .doc("Cables down for each cable up, for each level except the highest. One number is for all of them. "
              "Default: "
              "1, which is non-blocking."),
     type_field(), config::text("prefix").fallback("gpu").doc("Name of the devices; each gets a number."),
     link_field("link", "Link from each device to its switch."),
     link_field("trunk", "Links between switches. Default: the same as `link`.").optional(), types_field()}};

/// Cables up of a switch of each level but the highest.
std::vector<int> read_ups(const Value& map, const std::vector<int>& down, ClusterWriter& writer) {
  std::vector<int> ups(down.begin(), down.end() - 1);
  const Value* ratios = map.find("oversubscription");
  if (!ratios) return ups;
  const std::size_t given = ratios->items.size();
  if (given != ups.size() && (given != 1 || ups.empty()))
    writer.problems().add(
        ratios->where, "oversubscription",
        fmt::format("{} for {} below the highest", pluralize(static_cast<std::int64_t>(given), "ratio"),
                    pluralize(static_cast<std::int64_t>(ups.size()), "level")),
        "one for each level but the highest, from the lowest up", "oversubscription");
  for (std::size_t l = 0; l < (given == 1 ? ups.size() : std::min(ups.size(), given)); ++l) {
    const std::size_t at = given == 1 ? 0 : l;
    const double ratio = config::as_real(ratios->items[at]), up = down[l] / ratio;
    ups[l] = static_cast<int>(std::lround(up));
    if (ups[l] < 1 || std::abs(up - ups[l]) > 1e-6)
      writer.problems().add(ratios->items[at].where, fmt::format("oversubscription[{}]", at),
                            fmt::format("{} cables down over {} is not a whole number of cables up", down[l], ratio),
                            ratios_text(down[l]), "oversubscription");
  }
  return ups;
}

/// Switch s stands at position s mod `positions` above subtree s / `positions`.
struct Level {
  std::vector<VertexId> switches;
  int subtrees = 0, positions = 1;
};

Level add_level(std::size_t number, int subtrees, int positions, ClusterWriter& writer) {
  Level level{{}, subtrees, positions};
  for (int s = 0; s < subtrees * positions; ++s)
    level.switches.push_back(writer.add_switch(fmt::format("level{}.{}", number, s)));
  return level;
}

Level add_level_above(const Level& below, std::size_t number, int down, int ups, const Link& trunk,
                      ClusterWriter& writer) {
  writer.count({below.subtrees / down, below.positions, ups}, "switches");
  Level above = add_level(number, below.subtrees / down, below.positions * ups, writer);
  for (int s = 0; s < below.subtrees * below.positions; ++s)
    for (int up = 0; up < ups; ++up) {
      const int subtree = s / below.positions / down, position = up * below.positions + s % below.positions;
      const VertexId from = below.switches[s];
      const VertexId to = above.switches[subtree * above.positions + position];
      writer.connect(writer.cluster().vertex_name(from) + "-" + writer.cluster().vertex_name(to), trunk, {from, to});
    }
  return above;
}

Cluster build_fat_tree(const Value& map) {
  ClusterWriter writer(map);
  const Value& list = map.at("down");
  if (list.items.empty()) throw InputError({{list.where, "down", "there is no level", "such as [16, 8]", "down"}});
  std::vector<int> down;
  for (const Value& count : list.items) down.push_back(config::as_int(count));
  const int devices = writer.count(down);
  const std::vector<int> ups = read_ups(map, down, writer);
  const Link cable = writer.link(map.at("link"), "link");
  const Value* trunk_value = map.find("trunk");
  const Link trunk = trunk_value ? writer.link(*trunk_value, "trunk") : cable;
  const std::string& prefix = map.at("prefix").text;
  const DeviceTypeId type = writer.type(map.at("type"), "type", prefix);
  writer.problems().throw_if_any();

  const auto name = [&](int d) { return fmt::format("{}{}", prefix, d); };
  for (int d = 0; d < devices; ++d) writer.add_device(name(d), type, name(d));
  Level level = add_level(1, devices / down[0], 1, writer);
  for (int d = 0; d < devices; ++d)
    writer.connect(name(d) + ".link", cable, {VertexId{d}, level.switches[d / down[0]]});
  for (std::size_t l = 1; l < down.size(); ++l)
    level = add_level_above(level, l + 1, down[l], ups[l - 1], trunk, writer);
  writer.take_turns();
  return writer.finish();
}

}  // namespace

extern const TopologyGenerator fat_tree{
    .name = "fat_tree",
    .summary = "A fat tree of any height, with or without oversubscription.",
    .source = "Ohring et al., IPPS 1995; Zahavi, JPDC 2012",
    .fields = &kFatTreeFields,
    .build = build_fat_tree,
};

}  // namespace stagecraft::topology_generators
