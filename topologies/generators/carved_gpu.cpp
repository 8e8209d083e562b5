// One GPU whose multiprocessors are divided among virtual devices, which share its memory: what runs of several stages
// on one GPU are made of (green contexts). The driver gives multiprocessors away in groups.

#include <fmt/core.h>

#include <algorithm>

#include "sim/cluster/device_presets.hpp"
#include "sim/core/text.hpp"
#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

const config::MapSpec& memory_fields() {
  static const config::MapSpec spec{
      "What the memory of the GPU reads and writes, together.",
      {config::quantity("bandwidth", config::Dimension::Bandwidth)
           .optional()
           .doc("Bandwidth for all parts together. Default: the bandwidth of the type."),
       config::quantity("alone", config::Dimension::Bandwidth)
           .doc("Bandwidth for one part while the others are idle; a few multiprocessors cannot use all of it.")}};
  return spec;
}

const config::MapSpec& message_fields() {
  static const config::MapSpec spec{
      "A message, which is a copy within the GPU.",
      {config::quantity("bandwidth", config::Dimension::Bandwidth).doc("Bandwidth of one copy."),
       config::quantity("latency", config::Dimension::Time).fallback("0").doc("Time of a message without bytes.")}};
  return spec;
}

const config::MapSpec kCarvedGpuFields{
    "One GPU, divided.",
    {type_field(), config::integer("multiprocessors", 1, 1e6).doc("Multiprocessors of the whole GPU."),
     config::integer("group", 1, 1e6)
         .fallback("8")
         .doc("Fewest multiprocessors of a part that the driver allows; parts are multiples of it."),
     config::integer("parts", 1, 1e6).doc("Number of equal virtual devices; 1 is the whole GPU."),
     config::map("memory", memory_fields()).doc("The memory that the parts share."),
     config::map("messages", message_fields()).doc("Messages between two parts."), types_field()}};

/// Multiprocessors of each part.
int divide(const config::Value& map, config::Problems& problems) {
  const int total = config::as_int(map.at("multiprocessors")), group = config::as_int(map.at("group"));
  const int parts = config::as_int(map.at("parts")), groups = total / group;
  if (parts > 1 && parts > groups)
    problems.add(map.at("parts").where, "parts",
                 fmt::format("{} make {} of {}, too few for {}", pluralize(total, "multiprocessor"),
                             pluralize(groups, "group"), group, pluralize(parts, "part")),
                 groups > 0 ? "at most " + pluralize(groups, "part") : "group: 1", "too-many");
  return multiprocessors_of_part(total, group, parts);
}

/// `memory`: what all parts get together.
DeviceType part_of(DeviceType gpu, int multiprocessors, int total, int parts, Bandwidth alone) {
  const double share = static_cast<double>(multiprocessors) / total;
  gpu.name = fmt::format("{}-{}sm", gpu.name, multiprocessors);
  gpu.peak.value *= share;
  gpu.speed *= share;
  gpu.memory_bandwidth = alone;
  gpu.memory.value /= parts;
  gpu.memory_reserve.value /= parts;
  gpu.idle.value /= parts;
  gpu.busy.value /= parts;
  return gpu;
}

void join(ClusterWriter& writer, const Link& messages, Bandwidth memory, int parts) {
  std::vector<VertexId> vertices;
  for (int i = 0; i < parts; ++i) vertices.emplace_back(i);
  writer.connect("messages", messages, vertices);
  // A copy reads and writes, so copies have half of what is read and written together.
  writer.connect("memory", {"memory", {memory.value / 2}, {}, Duplex::Half, {}}, vertices);
  for (int from = 0; from < parts; ++from)
    for (int to = 0; to < parts; ++to)
      if (from != to) writer.fix({DeviceId{from}, DeviceId{to}, {{LinkId{0}, from < to}, {LinkId{1}, from < to}}});
}

Cluster build_carved_gpu(const config::Value& map) {
  ClusterWriter writer(map);
  config::Problems& problems = writer.problems();
  const DeviceTypeId type = writer.type(map.at("type"), "type", "gpu");
  const int parts = config::as_int(map.at("parts"));
  const int multiprocessors = divide(map, problems);
  const config::Value& memory = map.at("memory");
  problems.throw_if_any();
  const DeviceType gpu = writer.cluster().types[type];
  Link messages{"messages",
                config::as_bandwidth(map.at("messages").at("bandwidth")),
                config::as_seconds(map.at("messages").at("latency")),
                Duplex::Unshared,
                {}};
  const config::Value* given = memory.find("bandwidth");
  const Bandwidth total = given ? config::as_bandwidth(*given) : gpu.memory_bandwidth;
  const Bandwidth alone = config::as_bandwidth(memory.at("alone"));
  const auto positive = [&](const config::Value& value, const char* path, double amount) {
    if (!(amount > 0))
      problems.add(value.where, path, fmt::format("{} is not possible here", value.text), "it has to be more than zero",
                   "range");
  };
  if (given) positive(*given, "memory.bandwidth", total.value);
  positive(memory.at("alone"), "memory.alone", alone.value);
  positive(map.at("messages").at("bandwidth"), "messages.bandwidth", messages.bandwidth.value);
  if (alone > total)
    problems.add(memory.at("alone").where, "memory.alone",
                 fmt::format("{} are more than the {} that all parts get together", to_text(alone), to_text(total)), {},
                 "range");
  problems.throw_if_any();

  for (int i = 0; i < parts; ++i) writer.add_device(fmt::format("part{}", i), type, "gpu");
  if (parts > 1) join(writer, messages, total, parts);
  Cluster cluster = writer.finish();
  cluster.types[type] = part_of(gpu, multiprocessors, config::as_int(map.at("multiprocessors")), parts, alone);
  if (parts > 1)
    for (Device& device : cluster.devices) device.memory = LinkId{1};
  return cluster;
}

}  // namespace

extern const TopologyGenerator carved_gpu{
    .name = "carved_gpu",
    .summary = "One GPU divided into virtual devices that share its memory.",
    .source = "CUDA driver API 13.0, green contexts",
    .fields = &kCarvedGpuFields,
    .build = build_carved_gpu,
};

}  // namespace stagecraft::topology_generators
