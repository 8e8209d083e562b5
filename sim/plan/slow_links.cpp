// The least time of collectives on the links between the very devices of a stage, which prices by shape do not know;
// stage_costs.cpp counts it.

#include "sim/plan/slow_links.hpp"

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "sim/cluster/link_collectives.hpp"
#include "sim/plan/stage_groups.hpp"

namespace stagecraft {
namespace {

using DeviceGroups = std::vector<std::vector<DeviceId>>;

/// Whether some group has members on several nodes.
bool spans_nodes(const DeviceGroups& groups, const Cluster& cluster) {
  for (const std::vector<DeviceId>& group : groups)
    for (const DeviceId d : group)
      if (!cluster.on_one_node(d, group.front())) return true;
  return false;
}

/// Whether a group of the stage, which has collectives in its passes, is on several nodes. Prices by shape know the
/// links inside of a node, so that no other group has a higher floor.
bool has_links_between_nodes(const Stage& stage, const Cluster& cluster) {
  const Degrees& d = stage.shape.degrees;
  const auto is_far = [&](const Mesh& mesh, AxisSet axes) { return spans_nodes(mesh.groups(axes), cluster); };
  return (d.tensor > 1 && is_far(stage.dense, {Axis::Tensor})) ||
         (d.context > 1 && is_far(stage.dense, {Axis::Context})) ||
         (d.expert > 1 && is_far(stage.expert, {Axis::Expert})) ||
         (d.expert_tensor > 1 && is_far(stage.expert, {Axis::Tensor})) ||
         (stage.shape.sums_each_pass() && is_far(stage.dense, {Axis::Context, Axis::Data}));
}

}  // namespace

MinTime min_times_on_links(const Stage& stage, const CostTable& costs, DeviceTypeId type) {
  const CostRules* rules = &costs.rules();
  if (!rules->links || rules->flows || stage.all_devices().size() < 2) return {};
  if (!has_links_between_nodes(stage, costs.cluster())) return {};
  using Kind = std::tuple<Axis, bool, CollectiveKind, PriceSource>;
  const auto floors = std::make_shared<std::map<Kind, LinkFloor>>();
  return [&stage, rules, type, floors](const Collective& c) -> Seconds {
    if (c.part != GroupPart::Whole && c.part != GroupPart::InsideCopies) return {};  // Priced by shape alone.
    const Price price = rules->price_by_shape(c, stage.shape, type);
    const auto [entry, is_new] = floors->try_emplace({c.axis, c.of_experts, c.kind, price.from});
    if (is_new) {
      std::vector<std::vector<DeviceId>> groups;
      for (const DeviceGroup& group : groups_of(stage, c, {})) groups.push_back(group.devices);
      entry->second = rules->floor(c, price, groups);
    }
    return entry->second.time(c.bytes);
  };
}

}  // namespace stagecraft
