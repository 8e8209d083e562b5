// Pods of GPU nodes, optimized for rails as in NVIDIA's DGX SuperPOD: the cards of all GPUs with the same number meet
// on one leaf switch of their pod, so that collectives over equal numbers stay on it; leaves meet on spines. A GPU does
// not pass traffic on to the rail of another (PXN): that traffic crosses a spine. Targets take turns on the spines
// (D-mod-k).

#include <fmt/core.h>

#include <cmath>

#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

const config::MapSpec kRailPodsFields{
    "Pods of GPU nodes with a leaf switch for each rail, and spines above all leaves.",
    {config::integer("pods", 1, 1e5).fallback("1").doc("Number of pods."),
     config::integer("nodes", 1, 1e5).beside_base().doc("Nodes of one pod."),
     config::integer("gpus", 1, 1024).fallback("8").doc("GPUs of one node, which is the number of rails."),
     type_field(),
     config::real("oversubscription", 1, 1e6)
         .fallback("1")
         .doc("Cables down for each cable up of a leaf; 1 is non-blocking."),
     link_field("nvlink", "Link from each GPU to the NVSwitch of its node."),
     link_field("nic", "Link from each GPU to the leaf switch of its rail."),
     link_field("trunk", "Links between leaves and spines. Default: the same as `nic`.").optional(), types_field()}};

Cluster build_rail_pods(const config::Value& map) {
  ClusterWriter writer(map);
  const int pods = config::as_int(map.at("pods")), nodes = config::as_int(map.at("nodes"));
  const int gpus = config::as_int(map.at("gpus")), devices = writer.count({pods, nodes, gpus});
  const double ratio = config::as_real(map.at("oversubscription"));
  const int spines = static_cast<int>(std::lround(nodes / ratio));
  if (spines < 1 || std::abs(nodes / ratio - spines) > 1e-6)
    writer.problems().add(map.at("oversubscription").where, "oversubscription",
                          fmt::format("{} cables down over {} is not a whole number of cables up", nodes, ratio),
                          ratios_text(nodes), "oversubscription");
  const Link nvlink = writer.link(map.at("nvlink"), "nvlink"), nic = writer.link(map.at("nic"), "nic");
  const config::Value* trunk_value = map.find("trunk");
  const Link trunk = trunk_value ? writer.link(*trunk_value, "trunk") : nic;
  const DeviceTypeId type = writer.type(map.at("type"), "type", "gpu");
  writer.problems().throw_if_any();

  IdVector<DeviceId, std::size_t> numbers;  // Consecutive along one rail of one pod, which is one leaf.
  for (int d = 0; d < devices; ++d) {
    const int gpu = d % gpus, node = d / gpus % nodes, pod = d / gpus / nodes;
    const std::string host = fmt::format("pod{}.node{}", pod, node);
    writer.add_device(fmt::format("{}.gpu{}", host, gpu), type, host);
    numbers.push_back((pod * gpus + gpu) * nodes + node);
  }
  writer.take_turns(std::move(numbers));

  const auto name = [&](int d) { return writer.cluster().devices[DeviceId{d}].name; };
  for (int n = 0; gpus > 1 && n < pods * nodes; ++n) {
    const VertexId hub = writer.add_switch(fmt::format("pod{}.node{}.nvswitch", n / nodes, n % nodes));
    for (int i = 0; i < gpus; ++i)
      writer.connect(name(n * gpus + i) + ".nvlink", nvlink, {VertexId{n * gpus + i}, hub});
  }
  std::vector<VertexId> leaves;
  for (int l = 0; l < pods * gpus; ++l)
    leaves.push_back(writer.add_switch(fmt::format("pod{}.rail{}", l / gpus, l % gpus)));
  for (int d = 0; d < devices; ++d)
    writer.connect(name(d) + ".nic", nic, {VertexId{d}, leaves[d / gpus / nodes * gpus + d % gpus]});
  if (leaves.size() == 1) return writer.finish();
  for (int s = 0; s < spines; ++s) {
    const VertexId spine = writer.add_switch(fmt::format("spine{}", s));
    for (VertexId leaf : leaves)
      writer.connect(fmt::format("{}-spine{}", writer.cluster().vertex_name(leaf), s), trunk, {leaf, spine});
  }
  return writer.finish();
}

}  // namespace

extern const TopologyGenerator rail_pods{
    .name = "rail_pods",
    .summary = "Pods of GPU nodes with a leaf switch for each rail, and spines.",
    .source = "NVIDIA DGX SuperPOD reference architecture",
    .fields = &kRailPodsFields,
    .build = build_rail_pods,
};

}  // namespace stagecraft::topology_generators
