#include "sim/cost/cost_rules.hpp"

#include "sim/cluster/link_collectives.hpp"
#include "sim/cluster/link_table.hpp"

namespace stagecraft {

Accelerator accelerator_from_rates(const DeviceType& type, NumberFormat format, const Cluster& cluster) {
  Accelerator a;
  a.name = type.name;
  for (const NumberFormat f : {format, NumberFormat::Bf16, NumberFormat::Fp16})
    a.formats[f] = {.peak = type.peak, .share = type.efficiency};
  a.memory = type.memory;
  a.memory_rate = type.memory_bandwidth;
  a.memory_share = a.permute_share = 1;
  a.tiles = {{1, 1}};
  a.attention_forward = a.attention_backward = {.share = type.efficiency};
  a.grouped = {.share = type.efficiency};
  a.launch = type.launch;
  if (cluster.devices.size() > 1) {
    const LinkRate link = LinkTable(cluster).link(DeviceId{0}, DeviceId{1});
    a.collectives_by_links = true;
    a.collectives = {.alpha = {}, .hop = 2 * link.latency, .bus = link.bandwidth};  // Each way pays each hop once.
  }
  return a;
}

namespace {

std::optional<Seconds> measured_time(const CostRules& rules, CollectiveKind kind, CollectiveUse use,
                                     const GroupShape& group, Bytes bytes, DeviceTypeId type) {
  if (!rules.profile || type != rules.profiled) return std::nullopt;
  return rules.profile->collective(kind, use, group.ranks, bytes);
}

}  // namespace

bool CostRules::is_measured(CollectiveKind kind, CollectiveUse use, const GroupShape& group, DeviceTypeId type) const {
  return measured_time(*this, kind, use, group, Bytes{1}, type).has_value();
}

bool CostRules::has_curve(CollectiveKind kind, const GroupShape& group, DeviceTypeId type) const {
  return group.ranks > 1 && find_curve(accelerators[type].curves, kind, group) != nullptr;
}

Seconds CostRules::time_of(CollectiveKind kind, const GroupShape& group, Bytes bytes, DeviceTypeId type) const {
  if (bytes.value > 0)
    if (const auto time = measured_time(*this, kind, CollectiveUse::Ops, group, bytes, type)) return *time;
  const Accelerator& device = accelerators[type];
  if (const auto time = curve_time(device.curves, kind, group, bytes)) return *time;
  if (device.collectives_by_links) return links->time(kind, group, bytes);
  return collective_time(kind, group, bytes, device.collectives, node.card);
}

Seconds CostRules::ring_time(CollectiveKind kind, const GroupShape& group, Bytes bytes, DeviceTypeId type) const {
  if (bytes.value > 0)
    if (const auto time = measured_time(*this, kind, CollectiveUse::Parameters, group, bytes, type)) return *time;
  const Accelerator& device = accelerators[type];
  if (const auto time = curve_time(device.curves, kind, group, bytes)) return *time;
  if (device.collectives_by_links) return links->ring_time(kind, group, bytes);
  return collective_time(kind, group, bytes, device.collectives, node.card);
}

}  // namespace stagecraft
