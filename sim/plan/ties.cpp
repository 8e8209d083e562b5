#include "sim/plan/ties.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

using Devices = std::vector<DeviceId>;

bool has(const Devices& devices, DeviceId device) {
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

/// Puts the devices of a group into the rings, one into each; false where two of them are in the same one already.
bool join(const Devices& group, std::vector<Devices>& rings) {
  std::vector<bool> taken(rings.size(), false);
  Devices others;
  for (const DeviceId device : group) {
    const auto own = std::find_if(rings.begin(), rings.end(), [&](const Devices& ring) { return has(ring, device); });
    if (own == rings.end()) {
      others.push_back(device);
      continue;
    }
    const auto place = static_cast<std::size_t>(own - rings.begin());
    if (taken[place]) return false;
    taken[place] = true;
  }
  auto next = others.begin();
  for (std::size_t r = 0; r < rings.size(); ++r)
    if (!taken[r]) rings[r].push_back(*next++);
  return true;
}

std::vector<Devices> side_by_side(const std::vector<Devices>& holders) {
  std::vector<Devices> rings;
  for (const DeviceId device : holders.front()) rings.push_back({device});
  for (std::size_t h = 1; h < holders.size(); ++h)
    if (holders[h].size() != rings.size() || !join(holders[h], rings)) return {};
  return rings;
}

Devices all_of(const std::vector<Devices>& holders) {
  Devices all;
  for (const Devices& group : holders)
    for (const DeviceId device : group)
      if (!has(all, device)) all.push_back(device);
  return all;
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
                      [&](LayerId id) { return model.layers[static_cast<std::size_t>(id)].tie == tie.name; }))
        tie.stages.emplace_back(s);
  }
  std::erase_if(ties, [](const Tie& tie) { return tie.stages.size() < 2 || tie.gradient.value <= 0; });
  return ties;
}

std::vector<TieRing> tie_rings(int tie, const std::vector<Devices>& holders) {
  if (holders.size() < 2) return {};
  std::vector<Devices> found = side_by_side(holders);
  if (found.empty()) found.push_back(all_of(holders));
  std::vector<TieRing> rings;
  for (Devices& devices : found)
    if (devices.size() > 1) rings.push_back({tie, std::move(devices)});
  return rings;
}

}  // namespace stagecraft
