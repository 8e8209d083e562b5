#include "sim/plan/gradient_groups.hpp"

#include <algorithm>

#include "sim/plan/overlap.hpp"

namespace stagecraft {
GradientGroups::GradientGroups(const Plan& plan) : round_devices_(plan.stages.size()), ties_(plan.stages.size()) {
  for (int s = 0; s < plan.stage_count(); ++s) {
    const Stage& stage = plan.stage(StageId{s});
    const bool second = stage.twin.valid() && stage.twin < s;
    first_.push_back(second ? stage.twin : StageId{s});
    devices_.push_back(second ? std::vector<DeviceId>{} : stage.devices);
    if (second) {
      auto& all = devices_[first_.back()];
      all = each_once({all, stage.devices});
    }
  }
  round_ = first_;
  if (!plan.ties.empty()) join_rounds(plan);
}

void GradientGroups::join_rounds(const Plan& plan) {
  std::vector<StageId> tied;
  for (std::size_t t = 0; t < plan.ties.size(); ++t) {
    std::vector<StageId> groups;
    for (const StageId s : plan.ties[t].stages)
      if (std::find(groups.begin(), groups.end(), of(s)) == groups.end()) groups.push_back(of(s));
    holdings_.emplace_back();
    if (groups.size() < 2) continue;
    hold(plan, static_cast<int>(t), groups);
    StageId joined = round(groups.front());
    for (const StageId g : groups) joined = std::min(joined, round(g));
    for (const StageId g : groups) std::replace(round_.begin(), round_.end(), StageId{round(g)}, joined);
    tied.push_back(groups.front());
  }
  for (const StageId one : tied) {
    auto& all = round_devices_[round(one)];
    if (!all.empty()) continue;
    std::vector<std::vector<DeviceId>> parts;
    for (int s = 0; s < plan.stage_count(); ++s)
      if (round(StageId{s}) == round(one)) parts.push_back(plan.stage(StageId{s}).devices);
    all = each_once(parts);
  }
}

/// The rings of a tie, and what each device holds of it.
void GradientGroups::hold(const Plan& plan, int tie, const std::vector<StageId>& groups) {
  auto& held = holdings_.back();
  held.resize(plan.device_count());
  std::vector<std::vector<DeviceId>> holders;
  for (const StageId g : groups) {
    holders.push_back(devices(g));
    for (std::size_t place = 0; place < holders.back().size(); ++place)
      held[holders.back()[place]].groups.push_back({g, static_cast<int>(place)});
  }
  const auto& stages = plan.ties[tie].stages;
  for (const StageId s : stages) {
    ties_[s].push_back(tie);
    for (const DeviceId device : plan.stage(s).devices) {
      StageId& first = held[device].stage;
      if (!first.valid()) first = s;
    }
  }
  for (TieRing& ring : tie_rings(tie, holders)) {
    for (std::size_t place = 0; place < ring.devices.size(); ++place) {
      Holding& own = held[ring.devices[place]];
      own.ring = static_cast<int>(rings_.size()), own.place = static_cast<int>(place);
    }
    rings_.push_back(std::move(ring));
  }
}

int GradientGroups::place_of(StageId stage, DeviceId device) const {
  return stagecraft::place_of(devices(stage), device);
}

}  // namespace stagecraft
