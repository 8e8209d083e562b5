#include "sim/plan/ties.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

using Devices = std::vector<DeviceId>;

std::size_t device_count(const std::vector<Devices>& groups) {
  std::size_t count = 0;
  for (const Devices& group : groups)
    for (const DeviceId device : group) count = std::max(count, static_cast<std::size_t>(device) + 1);
  return count;
}

/// Puts the devices of a group into the rings, one into each; false where two of them are in the same one already.
bool join(const Devices& group, std::vector<Devices>& rings, std::vector<int>& ring_of) {
  std::vector<bool> taken(rings.size(), false);
  Devices others;
  for (const DeviceId device : group) {
    const int own = ring_of[device];
    if (own < 0) {
      others.push_back(device);
      continue;
    }
    if (taken[own]) return false;
    taken[own] = true;
  }
  auto next = others.begin();
  for (std::size_t r = 0; r < rings.size(); ++r) {
    if (taken[r]) continue;
    ring_of[*next] = static_cast<int>(r);
    rings[r].push_back(*next++);
  }
  return true;
}

std::vector<Devices> side_by_side(const std::vector<Devices>& holders) {
  std::vector<Devices> rings(holders.front().size());
  std::vector<int> ring_of(device_count(holders), -1);
  for (const Devices& group : holders)
    if (group.size() != rings.size() || !join(group, rings, ring_of)) return {};
  return rings;
}

}  // namespace

std::vector<Tie> ties_of(const Plan& plan, const ModelGraph& model) {
  std::vector<Tie> ties;
  for (const Layer& layer : model.layers) {
    if (layer.tie.empty()) continue;
    const auto known = std::find_if(ties.begin(), ties.end(), [&](const Tie& tie) { return tie.name == layer.tie; });
    Tie& tie = known != ties.end() ? *known : ties.emplace_back(Tie{layer.tie, {}, {}});
    tie.gradient = std::max(tie.gradient, Bytes{layer.parameters * model.precision.gradient});
  }
  for (int s = 0; s < plan.stage_count(); ++s) {
    const Stage& stage = plan.stage(StageId{s});
    if (stage.task != StageTask::Whole) continue;
    for (Tie& tie : ties)
      if (std::any_of(stage.layers.begin(), stage.layers.end(),
                      [&](LayerId id) { return model.layers[id].tie == tie.name; }))
        tie.stages.emplace_back(s);
  }
  std::erase_if(ties, [](const Tie& tie) { return tie.stages.size() < 2 || tie.gradient.value <= 0; });
  return ties;
}

std::vector<DeviceId> each_once(const std::vector<Devices>& groups) {
  Devices all;
  std::vector<bool> there(device_count(groups), false);
  for (const Devices& group : groups)
    for (const DeviceId device : group) {
      if (!there[device]) all.push_back(device);
      there[device] = true;
    }
  return all;
}

std::vector<TieRing> tie_rings(int tie, const std::vector<Devices>& holders) {
  if (holders.size() < 2) return {};
  std::vector<Devices> found = side_by_side(holders);
  if (found.empty()) found.push_back(each_once(holders));
  std::vector<TieRing> rings;
  for (Devices& devices : found)
    if (devices.size() > 1) rings.push_back({tie, std::move(devices)});
  return rings;
}

}  // namespace stagecraft
