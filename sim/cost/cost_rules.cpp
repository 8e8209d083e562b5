// The one price list of collectives: measured times, curves, links, or constants of the device type; their floors; and
// the rules without a software stack, or for a device type with rates alone.

#include "sim/cost/cost_rules.hpp"

#include "sim/cluster/link_collectives.hpp"
#include "sim/cluster/link_table.hpp"

namespace stagecraft {

Accelerator accelerator_from_rates(const DeviceType& type, NumberFormat format, const Cluster& cluster) {
  Accelerator a;
  a.name = type.name;
  a.type = type;
  for (const NumberFormat f : {format, NumberFormat::Bf16, NumberFormat::Fp16})
    a.formats[f] = {.peak = type.peak, .share = type.efficiency};
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

std::shared_ptr<const CostRules> rules_without_software(const Cluster& cluster) {
  auto rules = std::make_shared<CostRules>();
  rules->software = no_software_stack();
  for (const DeviceType& type : cluster.types) {
    Accelerator a;
    a.name = type.name;
    a.formats[rules->format].peak = type.peak;
    rules->accelerators.push_back(std::move(a));
  }
  return rules;
}

Price CostRules::price(const Collective& c, const GroupShape& group, DeviceTypeId type,
                       const std::vector<DeviceId>* devices) const {
  if (group.ranks <= 1 || c.bytes.value <= 0) return {};
  if (const Profile* const profile = profiles.empty() ? nullptr : profiles[type].get())
    if (const auto time = profile->collective(c.kind, use_of(c), group.ranks, c.bytes))
      return {*time, PriceSource::Profile};
  const Accelerator& device = accelerators[type];
  if (const auto time = curve_time(device.curves, c.kind, group, c.bytes)) return {*time, PriceSource::Curve};
  if (!device.collectives_by_links)
    return {collective_time(c.kind, group, c.bytes, device.collectives, node.card), PriceSource::Constants};
  const Seconds time = devices                ? links->ring_time(*devices, c.bytes)
                       : c.axis == Axis::Data ? links->ring_time(c.kind, group, c.bytes)
                                              : links->time(c.kind, group, c.bytes);
  return {time, PriceSource::Links};
}

/// A collective that was measured may have been more than a ring, such as a tree of NVLS, which crosses links less.
LinkFloor CostRules::floor(const Collective& c, const Price& price,
                           const std::vector<std::vector<DeviceId>>& groups) const {
  if (!links || price.from == PriceSource::Nothing || price.from == PriceSource::Profile) return {};
  const bool is_ring = c.axis == Axis::Data && price.from != PriceSource::Curve;
  using Carried = LinkCollectives::Carried;
  return links->floor(c.kind, groups, is_ring ? Carried::AsRing : Carried::OncePerNode);
}

}  // namespace stagecraft
