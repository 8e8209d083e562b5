// The field `host` of a cluster: a memory for each node, links between it and the devices, and what all copies share.

#include "sim/cluster/host_memory.hpp"

#include <map>

#include <fmt/core.h>

#include "sim/cluster/generator.hpp"

namespace stagecraft {
namespace {

using config::Dimension;
using config::Value;

const config::MapSpec& direction_fields() {
  static const config::MapSpec spec{
      "One direction of the link between a device and the memory of its host.",
      {config::quantity("bandwidth", Dimension::Bandwidth).doc("Rate of copies, as a benchmark of copies measures it."),
       config::quantity("latency", Dimension::Time).fallback("0").doc("Time before the first byte arrives.")}};
  return spec;
}

const config::MapSpec& host_fields() {
  static const config::MapSpec spec{
      "The memory of the host of each node, where plan.offload keeps what devices do not need for a while.",
      {config::quantity("memory", Dimension::Size).doc("Memory of one host that a training may use."),
       config::quantity("bandwidth", Dimension::Bandwidth)
           .optional()
           .doc("Rate at which all copies of a host, and an optimizer on it, read and write its memory together. "
                "Default: copies do not wait for each other there; an optimizer on the host needs it."),
       config::map("down", direction_fields()).doc("From a device to the memory of its host."),
       config::map("up", direction_fields()).optional().doc("From there to the device. Default: as `down`."),
       config::choice("duplex", std::vector<std::string>{"full", "half"})
           .fallback("full")
           .doc("full: copies in both directions run at the same time. half: they take turns."),
       config::integer("gpus_on_a_link", 1, 1024)
           .fallback("1")
           .doc("Neighboring devices of a node that share the link, as behind one PCIe switch."),
       config::quantity("pcie", Dimension::Bandwidth)
           .optional()
           .doc("Rate, in each direction, of the PCIe link between a device and its switch, which its copies and its "
                "messages to other nodes share. Default: they share no link, as where the network has a bus for "
                "itself.")}};
  return spec;
}

bool shares_directions(const Value& host) { return host.at("duplex").text == "half"; }

void check(const Value& host, const Link& down, const Link& up) {
  config::Problems problems;
  if (config::as_bytes(host.at("memory")).value <= 0)
    problems.add(host.at("memory").where, "cluster.host.memory", "a host without memory keeps nothing",
                 "write the size of its memory, or leave `host` out", "host");
  if (const Value* bandwidth = host.find("bandwidth"); bandwidth && config::as_bandwidth(*bandwidth).value <= 0)
    problems.add(bandwidth->where, "cluster.host.bandwidth", "a memory of 0 GB/s is never read",
                 "write the rate of its memory, such as 400 GB/s", "host");
  if (const Value* pcie = host.find("pcie"); pcie && config::as_bandwidth(*pcie).value <= 0)
    problems.add(pcie->where, "cluster.host.pcie", "over a bus of 0 GB/s nothing arrives",
                 "write its rate, such as 55 GB/s, or leave `pcie` out", "host");
  if (shares_directions(host) && (down.bandwidth != up.bandwidth || down.latency != up.latency))
    problems.add(host.find("up")->where, "cluster.host.up", "directions that take turns on one link have one rate",
                 "leave `up` out, or write duplex: full", "host");
  problems.throw_if_any();
}

}  // namespace

config::Field host_memory_field() {
  return config::map("host", host_fields())
      .optional()
      .beside_base()
      .doc("Memory of the hosts, for plan.offload. Default: nothing is kept there.");
}

void read_host_memory(const Value& checked, Cluster& cluster) {
  const Value* host = checked.find("host");
  if (!host) return;
  const Value* written_up = host->find("up");
  const Link down = read_link(host->at("down"), "cluster.host.down");
  const Link up = written_up ? read_link(*written_up, "cluster.host.up") : down;
  check(*host, down, up);
  const auto add = [&](Link link, const std::string& name) {
    link.name = name;
    link.duplex = Duplex::Half;  // Each direction is a link.
    return cluster.links.push_back(std::move(link));
  };
  const Value* pcie = host->find("pcie");
  const int each = config::as_int(host->at("gpus_on_a_link"));
  std::map<std::string, std::vector<DeviceId>> nodes;
  for (const DeviceId d : cluster.devices.ids()) {
    Device& device = cluster.devices[d];
    const std::string node = device.host.empty() ? device.name : device.host;
    std::vector<DeviceId>& before = nodes[node];
    if (before.empty()) {
      cluster.memories.push_back({node, config::as_bytes(host->at("memory"))});
      if (const Value* bandwidth = host->find("bandwidth"))
        cluster.memories.back().access =
            add({.name = {}, .bandwidth = config::as_bandwidth(*bandwidth)}, node + ".memory");
    }
    device.host_memory =
        before.empty() ? static_cast<int>(cluster.memories.size()) - 1 : cluster.devices[before.front()].host_memory;
    if (before.size() % each != 0) {
      device.down = cluster.devices[before.back()].down, device.up = cluster.devices[before.back()].up;
    } else {
      device.down = add(down, device.name + (shares_directions(*host) ? ".host" : ".down"));
      device.up = shares_directions(*host) ? device.down : add(up, device.name + ".up");
    }
    if (pcie) {
      const Bandwidth rate = config::as_bandwidth(*pcie);
      device.bus_out = add({.name = {}, .bandwidth = rate}, device.name + ".pcie.out");
      device.bus_in = add({.name = {}, .bandwidth = rate}, device.name + ".pcie.in");
    }
    before.push_back(d);
  }
}

}  // namespace stagecraft
