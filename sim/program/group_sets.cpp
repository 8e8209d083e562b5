#include "sim/program/group_sets.hpp"

#include <algorithm>
#include <map>

#include "sim/core/disjoint_sets.hpp"
#include "sim/plan/overlap.hpp"

namespace stagecraft {
namespace {

AxisSet axes_of(const OpCollective& c) {
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

std::vector<std::vector<DeviceId>> cells_of(const Stage& stage) {
  std::map<DeviceId, std::vector<DeviceId>> cell_of;
  for (std::vector<DeviceId>& cell : stage.dense.groups({Axis::Context, Axis::Tensor}))
    for (const DeviceId d : cell)
      if (place_of(stage.leaders, d) >= 0) cell_of[d] = cell;
  std::vector<std::vector<DeviceId>> cells;
  for (const DeviceId leader : stage.leaders) cells.push_back(cell_of.at(leader));
  return cells;
}

std::vector<DeviceGroup> groups_of(const Stage& stage, const OpCollective& c, const std::vector<int>& node_of) {
  std::vector<DeviceGroup> groups;
  const bool on_experts = c.of_experts || c.axis == Axis::Expert;
  for (const std::vector<DeviceId>& whole : (on_experts ? stage.expert : stage.dense).groups(axes_of(c)))
    for (std::vector<DeviceId>& members : part_of(whole, c.part, stage.shape.shard_copies(), node_of)) {
      if (members.size() < 2) continue;
      DeviceGroup& group = groups.emplace_back();
      if (!node_of.empty())
        for (const DeviceId d : members) group.nodes.push_back(node_of[d.value]);
      group.devices = std::move(members);
    }
  return groups;
}

std::vector<GroupSet> group_sets(const Stage& stage, const OpCollective& c, const std::vector<int>& node_of) {
  const std::vector<DeviceGroup> groups = groups_of(stage, c, node_of);
  std::map<DeviceId, int> leader_of;
  const std::vector<std::vector<DeviceId>> cells = cells_of(stage);
  for (int r = 0; r < std::ssize(cells); ++r)
    for (const DeviceId d : cells[r]) leader_of[d] = r;
  DisjointSets sets(static_cast<int>(cells.size()));
  for (const DeviceGroup& group : groups)
    for (const DeviceId d : group.devices) sets.join(leader_of.at(group.devices.front()), leader_of.at(d));
  std::map<int, GroupSet> by_root;
  for (const DeviceGroup& group : groups)
    by_root[sets.root(leader_of.at(group.devices.front()))].groups.push_back(group);
  for (int r = 0; r < std::ssize(cells); ++r)
    if (const auto set = by_root.find(sets.root(r)); set != by_root.end())
      set->second.leaders.push_back(stage.leaders[r]);
  std::vector<GroupSet> list;
  for (auto& [root, set] : by_root) list.push_back(std::move(set));
  return list;
}

std::vector<std::vector<DeviceId>> joint_devices(const Plan& plan, const StageCosts& costs,
                                                 const std::vector<int>& node_of) {
  const int devices = plan.device_count();
  DisjointSets joined(devices);
  for (const StageId s : plan.stages.ids()) {
    const StageCollectives* c = costs.at(s, 0).collectives.get();
    if (c == nullptr || !c->flows) continue;
    OpCollectives joined_lists;
    const EachPass<OpCollectives>& p = c->passes;
    for (const OpCollectives* list : {&p.forward, &p.input_gradient, &p.weight_gradient, &p.recompute, &c->update})
      append(joined_lists, *list, false);
    for (const OpCollective& one : joined_lists)
      for (const GroupSet& set : group_sets(plan.stage(s), one, node_of))
        for (const DeviceId d : set.leaders) joined.join(set.leaders.front().value, d.value);
  }
  std::map<int, std::vector<DeviceId>> by_root;
  for (int d = 0; d < devices; ++d) by_root[joined.root(d)].emplace_back(d);
  std::vector<std::vector<DeviceId>> sets;
  for (auto& [root, members] : by_root)
    if (members.size() > 1) sets.push_back(std::move(members));
  return sets;
}

}  // namespace stagecraft
