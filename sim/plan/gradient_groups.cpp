#include "sim/plan/gradient_groups.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

void add_new(std::vector<DeviceId>& all, const std::vector<DeviceId>& more) {
  for (const DeviceId device : more)
    if (std::find(all.begin(), all.end(), device) == all.end()) all.push_back(device);
}

}  // namespace

GradientGroups::GradientGroups(const Plan& plan) : round_devices_(plan.stages.size()) {
  for (int s = 0; s < plan.stage_count(); ++s) {
    const Stage& stage = plan.stage(StageId{s});
    const bool second = stage.twin.valid() && stage.twin < s;
    first_.push_back(second ? stage.twin : StageId{s});
    devices_.push_back(second ? std::vector<DeviceId>{} : stage.devices);
    if (second) add_new(devices_[static_cast<std::size_t>(first_.back())], stage.devices);
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
    std::vector<std::vector<DeviceId>> holders;
    for (const StageId g : groups) holders.push_back(devices(g));
    const std::vector<TieRing> rings = tie_rings(static_cast<int>(t), holders);
    if (rings.empty()) continue;
    rings_.insert(rings_.end(), rings.begin(), rings.end());
    StageId joined = round(groups.front());
    for (const StageId g : groups) joined = std::min(joined, round(g));
    for (const StageId g : groups) std::replace(round_.begin(), round_.end(), StageId{round(g)}, joined);
    tied.push_back(groups.front());
  }
  for (const StageId one : tied) {
    auto& all = round_devices_[static_cast<std::size_t>(round(one))];
    for (int s = 0; s < plan.stage_count(); ++s)
      if (round(StageId{s}) == round(one)) add_new(all, plan.stage(StageId{s}).devices);
  }
}

int GradientGroups::place_of(StageId stage, DeviceId device) const {
  const std::vector<DeviceId>& group = devices(stage);
  return static_cast<int>(std::find(group.begin(), group.end(), device) - group.begin());
}

}  // namespace stagecraft
