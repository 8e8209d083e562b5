// Nodes of GPUs. Inside a node the GPUs meet on an NVSwitch, on links between each pair of a socket, or only on PCIe;
// nodes meet on a fabric switch through one network card for each socket, behind PCIe, or through one for each GPU.

#include <fmt/core.h>

#include <map>

#include "sim/core/text.hpp"
#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

using config::Value;

const config::MapSpec& node_fields() {
  static const config::MapSpec spec{
      "Equal nodes.",
      {config::text("name").fallback("node").doc("Name of the nodes; each gets a number."),
       config::integer("count", 1, 1e5).fallback("1").doc("Number of nodes."),
       config::integer("gpus", 1, 1024).fallback("8").doc("GPUs of one node."), type_field(),
       config::choice("inside", std::vector<std::string>{"nvswitch", "mesh", "pcie"})
           .fallback("nvswitch")
           .doc("nvswitch: a link from each GPU to one switch. mesh: a link between every two GPUs of a socket. pcie: "
                "no NVLink."),
       config::integer("sockets", 1, 64).fallback("1").doc("Processors of one node, which share its GPUs evenly."),
       config::choice("nics", std::vector<std::string>{"each", "shared"})
           .fallback("each")
           .doc("each: one network card for each GPU. shared: one for each socket, reached over PCIe."),
       config::text("nvlink").fallback("nvlink").doc("Entry of `links` for nvswitch and mesh."),
       config::text("pcie").fallback("pcie").doc("Entry of `links` from each GPU to its host, where PCIe is used."),
       config::text("socket").fallback("socket").doc("Entry of `links` between two sockets."),
       config::text("nic").fallback("nic").doc("Entry of `links` from each card to the fabric.")}};
  return spec;
}

const config::MapSpec kNvlinkPodsFields{"Nodes of GPUs with NVLink inside and a fabric between them.",
                                        {config::list("nodes", config::map("node", node_fields()))
                                             .counted_by("count")
                                             .beside_base()
                                             .doc("Groups of equal nodes, in the order of the cluster. A number is "
                                                  "the number of nodes in all; it keeps the proportions of the "
                                                  "groups that it replaces."),
                                         links_field(), types_field()}};

struct Node {
  std::string name;
  int first = 0, gpus = 0, sockets = 1;  ///< Its devices.
  bool nvswitch = false, mesh = false, own_nics = false;
  Link nvlink, pcie, socket, nic;

  int socket_of(int gpu) const { return gpu / (gpus / sockets); }
  bool uses_pcie(bool fabric) const { return (!nvswitch && (mesh ? sockets > 1 : gpus > 1)) || (!own_nics && fabric); }
  std::string host(int s) const { return sockets > 1 ? fmt::format("{}.socket{}", name, s) : name + ".host"; }
  std::string card(int s) const { return sockets > 1 ? host(s) + ".nic" : name + ".nic"; }
};

Node read_group(const Value& group, const std::string& path, bool fabric, ClusterWriter& writer) {
  Node node;
  node.name = group.at("name").text;
  node.gpus = config::as_int(group.at("gpus"));
  node.sockets = config::as_int(group.at("sockets"));
  if (node.gpus % node.sockets != 0)
    writer.problems().add(
        group.at("sockets").where, path + ".sockets",
        fmt::format("{} cannot be shared evenly by {}", pluralize(node.gpus, "GPU"), pluralize(node.sockets, "socket")),
        {}, "sockets");
  node.nvswitch = group.at("inside").text == "nvswitch";
  node.mesh = group.at("inside").text == "mesh";
  node.own_nics = group.at("nics").text == "each";
  const auto kind = [&](const char* key) {
    return writer.link_kind(group.at(key).text, group.at(key), fmt::format("{}.{}", path, key));
  };
  if ((node.nvswitch || node.mesh) && node.gpus > 1) node.nvlink = kind("nvlink");
  if (node.uses_pcie(fabric)) node.pcie = kind("pcie");
  if (node.uses_pcie(fabric) && node.sockets > 1) node.socket = kind("socket");
  if (fabric) node.nic = kind("nic");
  return node;
}

/// The sockets as switches, where PCIe is used.
std::vector<VertexId> join_inside(const Node& node, bool fabric, ClusterWriter& writer) {
  const auto gpu = [&](int i) { return VertexId{node.first + i}; };
  const auto name = [&](int i) { return writer.cluster().devices[DeviceId{node.first + i}].name; };
  if (node.nvswitch && node.gpus > 1) {
    const VertexId hub = writer.add_switch(node.name + ".nvswitch");
    for (int i = 0; i < node.gpus; ++i) writer.connect(name(i) + ".nvlink", node.nvlink, {gpu(i), hub});
  }
  if (node.mesh)
    for (int i = 0; i < node.gpus; ++i)
      for (int j = i + 1; j < node.gpus && node.socket_of(j) == node.socket_of(i); ++j)
        writer.connect(fmt::format("{}-gpu{}.nvlink", name(i), j), node.nvlink, {gpu(i), gpu(j)});
  std::vector<VertexId> hosts;
  if (!node.uses_pcie(fabric)) return hosts;
  for (int s = 0; s < node.sockets; ++s) hosts.push_back(writer.add_switch(node.host(s)));
  for (int i = 0; i < node.gpus; ++i) writer.connect(name(i) + ".pcie", node.pcie, {gpu(i), hosts[node.socket_of(i)]});
  for (std::size_t s = 0; s < hosts.size(); ++s)
    for (std::size_t t = s + 1; t < hosts.size(); ++t)
      writer.connect(fmt::format("{}-socket{}", node.host(static_cast<int>(s)), t), node.socket, {hosts[s], hosts[t]});
  return hosts;
}

Cluster build_nvlink_pods(const Value& map) {
  ClusterWriter writer(map);
  const Value& groups = map.at("nodes");
  int total = 0;
  for (const Value& group : groups.items) total += config::as_int(group.at("count"));
  const bool fabric = total > 1;

  std::vector<Node> nodes;
  std::map<std::string, int> used;  // Groups may share a name: their numbers go on.
  for (std::size_t g = 0; g < groups.items.size(); ++g) {
    const std::string path = fmt::format("nodes[{}]", g);
    const Node kind = read_group(groups.items[g], path, fabric, writer);
    const DeviceTypeId type = writer.type(groups.items[g].at("type"), path + ".type", kind.name);
    for (int n = 0; n < config::as_int(groups.items[g].at("count")); ++n) {
      Node& node = nodes.emplace_back(kind);
      node.name = fmt::format("{}{}", kind.name, used[kind.name]++);
      node.first = static_cast<int>(writer.cluster().devices.size());
      for (int i = 0; i < node.gpus; ++i) writer.add_device(fmt::format("{}.gpu{}", node.name, i), type, node.name);
    }
  }
  writer.problems().throw_if_any();

  const VertexId centre = fabric ? writer.add_switch("fabric") : VertexId{};
  for (const Node& node : nodes) {
    const std::vector<VertexId> hosts = join_inside(node, fabric, writer);
    if (!fabric) continue;
    for (int s = 0; !node.own_nics && s < node.sockets; ++s) writer.connect(node.card(s), node.nic, {hosts[s], centre});
    for (int i = 0; node.own_nics && i < node.gpus; ++i)
      writer.connect(fmt::format("{}.gpu{}.nic", node.name, i), node.nic, {VertexId{node.first + i}, centre});
  }
  return writer.finish();
}

}  // namespace

extern const TopologyGenerator nvlink_pods{
    .name = "nvlink_pods",
    .summary = "Nodes of GPUs with NVLink or PCIe inside, network cards and a fabric switch.",
    .source = "NVIDIA HGX and DGX reference designs",
    .fields = &kNvlinkPodsFields,
    .build = build_nvlink_pods,
};

}  // namespace stagecraft::topology_generators
