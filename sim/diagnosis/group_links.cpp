// Finds the one slow link that explains most of what collectives of groups cost; rules for collectives call it.

#include "sim/diagnosis/group_links.hpp"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/diagnosis/finding.hpp"
#include "sim/diagnosis/suggestions.hpp"

namespace stagecraft::diagnosis {
namespace {

/// The slowest and the fastest of links that members of groups have to their neighbors: the slowest hop of each route.
struct LinkRange {
  LinkId slowest;
  double lowest = kInfinity, highest = 0;

  double ratio() const { return slowest.valid() ? highest / lowest : 1; }
  void add(LinkId link, double bandwidth) {
    if (bandwidth < lowest) slowest = link, lowest = bandwidth;
    highest = std::max(highest, bandwidth);
  }
};

struct SlowLink {
  LinkId link;
  double factor = 1;  ///< How much faster the fastest one in the same position is.
};

/// Routes inside of nodes and between them have other links by design, so each kind is compared with its own.
std::optional<SlowLink> slow_link_of(const DiagnosisInput& in, const DeviceGroups& groups) {
  constexpr double kNoticeable = 1.25;
  const Cluster& cluster = in.cluster();
  const Router router(cluster);
  LinkRange inside, between;
  for (const std::vector<DeviceId>& group : groups)
    for (std::size_t i = 0; i < group.size() && group.size() > 1; ++i) {
      const DeviceId from = group[i], to = group[(i + 1) % group.size()];
      if (from == to) continue;
      LinkRange& kind = cluster.on_one_node(from, to) ? inside : between;
      LinkRange route;
      for (const Hop& hop : router.require(from, to).hops) route.add(hop.link, cluster.links[hop.link].bandwidth.value);
      if (route.slowest.valid()) kind.add(route.slowest, route.lowest);
    }
  const LinkRange& worst = inside.ratio() > between.ratio() ? inside : between;
  if (worst.ratio() < kNoticeable) return {};
  return SlowLink{worst.slowest, worst.ratio()};
}

void add_groups(const Mesh& mesh, AxisSet axes, DeviceGroups& groups) {
  for (std::vector<DeviceId>& group : mesh.groups(axes))
    if (group.size() > 1) groups.push_back(std::move(group));
}

}  // namespace

DeviceGroups groups_of_passes(const Plan& plan) {
  DeviceGroups groups;
  for (const Stage& stage : plan.stages) {
    add_groups(stage.dense, {Axis::Tensor}, groups);
    add_groups(stage.dense, {Axis::Context}, groups);
    add_groups(stage.expert, {Axis::Expert}, groups);
    add_groups(stage.expert, {Axis::Tensor}, groups);
  }
  return groups;
}

DeviceGroups groups_of_sums(const Plan& plan) {
  DeviceGroups groups;
  for (const Stage& stage : plan.stages) {
    add_groups(stage.dense, {Axis::Context, Axis::Data}, groups);
    if (stage.shape.degrees.expert > 1) add_groups(stage.expert, {Axis::Data}, groups);
  }
  for (const Reduction& r : plan.reductions) groups.insert(groups.end(), r.groups.begin(), r.groups.end());
  return groups;
}

std::optional<Finding> slow_group_link(const DiagnosisInput& in, const DeviceGroups& groups,
                                       const std::string& collectives, Seconds cost) {
  constexpr double kMostOfIt = 0.5;
  const std::optional<SlowLink> slow = slow_link_of(in, groups);
  if (!slow) return {};
  const Link& link = in.cluster().links[slow->link];
  Seconds lost = (1 - 1 / slow->factor) * cost;
  if (lost < kSmallLoss * in.period) return {};
  std::optional<Suggestion> faster = faster_link(in, slow->link, slow->factor);
  if (faster) in.changed.simulate(*faster);
  if (faster && faster->run) lost = in.period - faster->run->period;
  if (lost < kMostOfIt * cost) return {};
  Finding f = finding(in, "slow-link", link.name, lost);
  f.sentence = fmt::format(
      "{} wait for {} of {}, where other links between devices of groups have {:.4g} times its bandwidth: {} of the "
      "period.",
      collectives, link.name, to_text(link.bandwidth), slow->factor, percent(f.share));
  if (faster) f.suggestions.push_back(std::move(*faster));
  return f;
}

}  // namespace stagecraft::diagnosis
