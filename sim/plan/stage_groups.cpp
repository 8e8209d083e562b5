// The groups of devices that run a collective of a stage, from the stage's mesh.

#include "sim/plan/stage_groups.hpp"

#include <algorithm>
#include <map>

namespace stagecraft {
namespace {

AxisSet axes_of(const Collective& c, const StageShape& shape) {
  if (c.axis == Axis::Expert && c.kind != CollectiveKind::AllToAll && shape.dispatcher == ExpertDispatch::AllGather)
    return {Axis::Expert, Axis::Tensor};
  if (c.axis == Axis::Expert && c.kind != CollectiveKind::AllToAll)
    return {Axis::Tensor};  // The devices of one expert.
  if (c.axis == Axis::Data && !c.of_experts) return {Axis::Data, Axis::Context};
  return {c.axis};
}

/// Runs of equal length, one for each copy of a divided state, or the members of equal place in all of them.
std::vector<std::vector<DeviceId>> copies_of(const std::vector<DeviceId>& group, bool inside, int copies) {
  const std::size_t length = std::max<std::size_t>(1, group.size() / copies);
  std::vector<std::vector<DeviceId>> parts(inside ? (group.size() + length - 1) / length : length);
  for (std::size_t i = 0; i < group.size(); ++i) parts[inside ? i / length : i % length].push_back(group[i]);
  return parts;
}

/// The members on each node, or the members of equal place on all nodes.
std::vector<std::vector<DeviceId>> part_of(const std::vector<DeviceId>& group, GroupPart part, int copies,
                                           const std::vector<int>& node_of) {
  if (part == GroupPart::InsideCopies || part == GroupPart::AcrossCopies)
    return copies_of(group, part == GroupPart::InsideCopies, copies);
  if (part == GroupPart::Whole || node_of.empty()) return {group};
  std::map<int, std::vector<DeviceId>> nodes;
  for (const DeviceId d : group) nodes[node_of[d.value]].push_back(d);
  std::vector<std::vector<DeviceId>> parts;
  if (part == GroupPart::InsideNodes) {
    for (auto& [node, members] : nodes) parts.push_back(std::move(members));
    return parts;
  }
  parts.resize(nodes.begin()->second.size());
  for (const auto& [node, members] : nodes)
    for (std::size_t i = 0; i < members.size() && i < parts.size(); ++i) parts[i].push_back(members[i]);
  return parts;
}

}  // namespace

std::vector<DeviceGroup> groups_of(const Stage& stage, const Collective& c, const std::vector<int>& node_of) {
  std::vector<DeviceGroup> groups;
  const bool on_experts = c.of_experts || c.axis == Axis::Expert;
  for (const std::vector<DeviceId>& whole : (on_experts ? stage.expert : stage.dense).groups(axes_of(c, stage.shape)))
    for (std::vector<DeviceId>& members : part_of(whole, c.part, stage.shape.shard_copies(), node_of)) {
      if (members.size() < 2) continue;
      DeviceGroup& group = groups.emplace_back();
      if (!node_of.empty())
        for (const DeviceId d : members) group.nodes.push_back(node_of[d.value]);
      group.devices = std::move(members);
    }
  return groups;
}

}  // namespace stagecraft
