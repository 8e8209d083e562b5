// Sites with a switched LAN each, and a long link between every two sites, such as data centers of several regions.

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "sim/core/text.hpp"
#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

using config::Value;

const config::MapSpec& site_fields() {
  static const config::MapSpec spec{
      "Equal devices around one switch.",
      {config::text("name").doc("Name of the site. Its devices are called this, a dot and a number."), type_field(),
       config::integer("devices", 1, 1e6).doc("Number of them."),
       config::text("lan").fallback("lan").doc(
           "Entry of `links`: the link from each device to the switch of its site.")}};
  return spec;
}

const config::MapSpec kPairFields{"The link between two sites, where it is not `wan`.",
                                  {config::list("between", config::text("site")).doc("The two sites."),
                                   config::text("link").doc("Entry of `links`.")}};

const config::MapSpec kWanFields{
    "Sites of devices, and a long link between every two sites.",
    {config::list("sites", config::map("site", site_fields())).doc("The sites, in the order of the cluster."),
     config::text("wan").fallback("wan").doc("Entry of `links`: the link between two sites."),
     config::list("pairs", config::map("pair", kPairFields))
         .optional()
         .doc("Pairs of sites with links of other kinds."),
     links_field(), types_field()}};

using Pair = std::pair<std::size_t, std::size_t>;

/// The sites that a pair names, smaller number first; nothing and a problem when it does not name two.
std::optional<Pair> read_pair(const Value& pair, const std::string& path, const std::vector<std::string>& names,
                              ClusterWriter& writer) {
  std::set<std::size_t> sites;
  const Value& between = pair.at("between");
  for (std::size_t i = 0; i < between.items.size(); ++i) {
    const Value& word = between.items[i];
    const auto it = std::find(names.begin(), names.end(), word.text);
    if (it == names.end()) {
      writer.problems().add(word.where, fmt::format("{}.between[{}]", path, i),
                            fmt::format("no site is called '{}'", word.text), suggest(word.text, names),
                            "unknown-site");
      return {};
    }
    sites.insert(it - names.begin());
  }
  if (between.items.size() == 2 && sites.size() == 2) return Pair{*sites.begin(), *sites.rbegin()};
  writer.problems().add(between.where, path + ".between", "a pair is two different sites", "such as [paris, tokyo]",
                        "pair");
  return {};
}

/// The kinds of links between sites that have one of their own.
std::map<Pair, Link> read_pairs(const Value& map, const std::vector<std::string>& names, ClusterWriter& writer) {
  std::map<Pair, Link> kinds;
  const Value* pairs = map.find("pairs");
  for (std::size_t p = 0; pairs && p < pairs->items.size(); ++p) {
    const Value& value = pairs->items[p];
    const std::string path = fmt::format("pairs[{}]", p);
    const auto sites = read_pair(value, path, names, writer);
    if (sites &&
        !kinds.emplace(*sites, writer.link_kind(value.at("link").text, value.at("link"), path + ".link")).second)
      writer.problems().add(value.where, path, "this pair has a link already", {}, "duplicate");
  }
  return kinds;
}

Cluster build_wan(const Value& map) {
  ClusterWriter writer(map);
  const Value& sites = map.at("sites");
  std::vector<std::string> names;
  std::vector<Link> lans;  // The link of each device to its site.
  std::vector<int> site_of;
  for (std::size_t s = 0; s < sites.items.size(); ++s) {
    const Value& site = sites.items[s];
    const std::string path = fmt::format("sites[{}]", s);
    names.push_back(site.at("name").text);
    const DeviceTypeId type = writer.type(site.at("type"), path + ".type", names.back());
    const Link lan = writer.link_kind(site.at("lan").text, site.at("lan"), path + ".lan");
    for (int i = 0; i < config::as_int(site.at("devices")); ++i) {
      writer.add_device(fmt::format("{}.{}", names.back(), i), type, fmt::format("{}.{}", names.back(), i));
      lans.push_back(lan);
      site_of.push_back(static_cast<int>(s));
    }
  }
  const std::map<Pair, Link> pair_links = read_pairs(map, names, writer);
  const std::size_t links = names.size() * (names.size() - std::min<std::size_t>(names.size(), 1)) / 2;
  Link wan;
  if (pair_links.size() < links) wan = writer.link_kind(map.at("wan").text, map.at("wan"), "wan");
  writer.problems().throw_if_any();

  for (const std::string& name : names) writer.add_switch(name + ".switch");
  for (std::size_t d = 0; d < lans.size(); ++d)
    writer.connect(writer.cluster().devices[DeviceId{d}].name + ".link", lans[d],
                   {VertexId{d}, writer.cluster().switch_vertex(site_of[d])});
  for (std::size_t a = 0; a < names.size(); ++a)
    for (std::size_t b = a + 1; b < names.size(); ++b) {
      const auto it = pair_links.find({a, b});
      writer.connect(
          names[a] + "-" + names[b], it == pair_links.end() ? wan : it->second,
          {writer.cluster().switch_vertex(static_cast<int>(a)), writer.cluster().switch_vertex(static_cast<int>(b))});
    }
  return writer.finish();
}

}  // namespace

extern const TopologyGenerator wan{
    .name = "wan",
    .summary = "Sites with a LAN each, and a long link between every two.",
    .source = "data centers of several regions",
    .fields = &kWanFields,
    .build = build_wan,
};

}  // namespace stagecraft::topology_generators
