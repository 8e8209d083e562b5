// Where collectives inside ops are messages (`run.collectives: flows`): which devices run one together, and which
// therefore begin an op together.

#include "sim/program/group_sets.hpp"

#include <algorithm>
#include <map>

#include "sim/core/disjoint_sets.hpp"
#include "sim/plan/overlap.hpp"

namespace stagecraft {
std::vector<std::vector<DeviceId>> cells_of(const Stage& stage) {
  std::map<DeviceId, std::vector<DeviceId>> cell_of;
  for (std::vector<DeviceId>& cell : stage.dense.groups({Axis::Context, Axis::Tensor}))
    for (const DeviceId d : cell)
      if (place_of(stage.leaders, d) >= 0) cell_of[d] = cell;
  std::vector<std::vector<DeviceId>> cells;
  for (const DeviceId leader : stage.leaders) cells.push_back(cell_of.at(leader));
  return cells;
}

std::vector<GroupSet> group_sets(const Stage& stage, const Collective& c, const std::vector<int>& node_of) {
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
    if (costs.at(s, 0).written() != Written::All) continue;
    const StageCollectives* c = costs.at(s, 0).collectives.get();
    Collectives joined_lists;
    const EachPass<Collectives>& p = c->passes;
    for (const Collectives* list : {&p.forward, &p.input_gradient, &p.weight_gradient, &p.recompute, &c->update})
      append(joined_lists, *list, false);
    for (const Collective& one : joined_lists)
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
