// Turns changes of the members of a group into changes of the device that stands for the group.

#include "sim/experiment/group_changes.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/experiment/places.hpp"

namespace stagecraft {
namespace {

constexpr AxisSet kGroup{Axis::Context, Axis::Tensor};

std::map<DeviceId, DeviceId> leaders_of(const Plan& plan) {
  std::map<DeviceId, DeviceId> leaders;
  for (const Stage& stage : plan.stages)
    for (const std::vector<DeviceId>& group : stage.dense.groups(kGroup))
      for (const DeviceId member : group) leaders.emplace(member, group.front());
  return leaders;
}

bool overlap(const Change& a, const Change& b) { return a.from < b.until && b.from < a.until; }

/// The members of each group that a change names.
using MembersByLeader = std::map<DeviceId, std::set<DeviceId>>;

void check_alone(const Change& a, const MembersByLeader& of_a, const Change& b, const MembersByLeader& of_b,
                 const Cluster& cluster) {
  if (!overlap(a, b)) return;
  for (const auto& [leader, members] : of_a) {
    const auto other = of_b.find(leader);
    if (other == of_b.end() || other->second == members) continue;
    throw InputError(
        {{{},
          "cluster.changes",
          fmt::format("{} and {} are in one group, which has one rate in a simulation, and change at the same time",
                      cluster.devices[*members.begin()].name, cluster.devices[*other->second.begin()].name),
          "leave the faster one out: its group waits for the slower one",
          "changes"}});
  }
}

}  // namespace

std::vector<DeviceId> group_led_by(const Plan& plan, DeviceId leader) {
  for (const Stage& stage : plan.stages)
    for (std::vector<DeviceId>& group : stage.dense.groups(kGroup))
      if (group.front() == leader) return std::move(group);
  return {leader};
}

Cluster with_changes_of_groups(const Cluster& cluster, const Plan& plan) {
  Cluster grouped = cluster;
  if (cluster.changes.empty()) return grouped;
  const std::map<DeviceId, DeviceId> leaders = leaders_of(plan);
  std::vector<MembersByLeader> members(cluster.changes.size());
  for (std::size_t n = 0; n < cluster.changes.size(); ++n) {
    std::vector<DeviceId>& devices = grouped.changes[n].devices;
    for (DeviceId& device : devices) {
      const auto leader = leaders.find(device);
      if (leader == leaders.end()) continue;
      members[n][leader->second].insert(device);
      device = leader->second;
    }
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    for (std::size_t before = 0; before < n; ++before)
      check_alone(cluster.changes[before], members[before], cluster.changes[n], members[n], cluster);
  }
  return grouped;
}

Cluster cluster_of_program(const PlannedExperiment& p) {
  if (p.experiment.run.each_device) return *p.experiment.cluster;
  return with_error_context(*p.experiment.source, "cluster", [&](const config::Value&) {
    return with_changes_of_groups(*p.experiment.cluster, p.plan);
  });
}

}  // namespace stagecraft
