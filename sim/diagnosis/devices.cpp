// Rule: a device that is slower than the others.

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "sim/config/override.hpp"
#include "sim/core/text.hpp"
#include "sim/diagnosis/rule.hpp"
#include "sim/experiment/group_changes.hpp"
#include "sim/planners/shared/planner.hpp"

namespace stagecraft::diagnosis {
namespace {

DeviceId slowest_device(const DiagnosisInput& in) {
  DeviceId slowest;
  for (const Stage& stage : in.plan().stages)
    for (const DeviceId d : stage.leaders)
      if (!slowest.valid() || in.idealized.slowness(d) > in.idealized.slowness(slowest)) slowest = d;
  return slowest;
}

/// The devices of the plan in the order of its stages, with another one in the place of `slow`.
std::vector<DeviceId> replaced(const Plan& plan, DeviceId slow, DeviceId other) {
  std::vector<DeviceId> devices;
  for (const Stage& s : plan.stages)
    for (const DeviceId d : s.all_devices()) {
      const DeviceId used = d == slow ? other : d;
      if (std::find(devices.begin(), devices.end(), used) == devices.end()) devices.push_back(used);
    }
  return devices;
}

/// A device without work that is as fast as the plan's fastest; not valid where there is none.
DeviceId spare_device(const DiagnosisInput& in, DeviceId slow) {
  std::set<DeviceId> used, changed;
  DeviceId fastest = slow;
  for (const Stage& s : in.plan().stages)
    for (const DeviceId d : s.all_devices()) {
      used.insert(d);
      if (s.leaders.size() == s.all_devices().size() && in.idealized.slowness(d) < in.idealized.slowness(fastest))
        fastest = d;
    }
  for (const Change& c : in.cluster().changes) changed.insert(c.devices.begin(), c.devices.end());
  DeviceId spare;
  for (const DeviceId d : in.cluster().devices.ids()) {
    const bool fits =
        !used.contains(d) && !changed.contains(d) && in.cluster().devices[d].type == in.cluster().devices[fastest].type;
    const auto is_near = [&](DeviceId other) { return in.cluster().on_one_node(other, slow); };
    if (fits && (!spare.valid() || (is_near(d) && !is_near(spare)))) spare = d;
  }
  return spare;
}

bool is_changed(const Cluster& cluster, DeviceId device) {
  return std::any_of(cluster.changes.begin(), cluster.changes.end(), [&](const Change& c) {
    return std::find(c.devices.begin(), c.devices.end(), device) != c.devices.end();
  });
}

/// The member that makes a group slow, of which `leader` has the times.
DeviceId slow_member(const DiagnosisInput& in, DeviceId leader) {
  for (const DeviceId member : group_led_by(in.plan(), leader))
    if (is_changed(in.cluster(), member)) return member;
  return leader;
}

/// A planner that may leave devices out, where the slow one has a single layer: `balanced` gives each device one.
std::optional<Suggestion> plan_without_slow_devices(const DiagnosisInput& in, DeviceId slow) {
  const PlanSpec& plan = in.experiment().plan;
  const PlannerDef* choosy = find_in(planners::catalog(), "pipedream");
  if (plan.planner->name != "balanced" || !choosy || plan.group.group() > 1) return {};
  const auto& stages = in.plan().stages;
  const auto at = std::find_if(stages.begin(), stages.end(),
                               [&](const Stage& s) { return s.leaders == std::vector<DeviceId>{slow}; });
  if (at == stages.end() || at->shape.layers.size() > 1) return {};
  return Suggestion{{fmt::format("plan={{planner: {}, micro_batch_size: {}}}", choosy->name, at->micro_batch_size)},
                    "a planner that chooses the devices too"};
}

void suggest(const DiagnosisInput& in, DeviceId slow, Finding& f) {
  const Experiment& e = in.experiment();
  const Cluster& cluster = in.cluster();
  const bool takes_devices = e.plan.planner->fields->find("devices") != nullptr && e.plan.stages;
  if (const DeviceId spare = spare_device(in, slow); takes_devices && spare.valid())
    f.suggestions.push_back({{devices_set(replaced(in.plan(), slow, spare), cluster)},
                             fmt::format("{} in the place of {}", cluster.devices[spare].name, f.where)});
  if (const auto other_plan = plan_without_slow_devices(in, slow)) f.suggestions.push_back(*other_plan);
  const bool changed = is_changed(cluster, slow);
  if (changed) f.suggestions.push_back({{"cluster.changes=[]"}, "repair it: without changes of the cluster"});
  const config::Value* listed = config::get_path(*e.source, "cluster.devices");
  const config::Value* type = config::get_path(*e.source, "cluster.devices." + cluster.devices[slow].name + ".type");
  if (!changed && listed && type) {
    for (const Stage& stage : in.plan().stages)
      for (const DeviceId d : stage.leaders) {
        if (in.idealized.slowness(d) > 1.001) continue;
        const std::string name = cluster.type_of(d).name;
        f.suggestions.push_back({{fmt::format("cluster.devices.{}.type={}", cluster.devices[slow].name, name)},
                                 fmt::format("a device of type {} in its place", name)});
        return;
      }
  }
}

/// A slow type with less work holds no device up: only what equal times of the stages save counts.
Seconds lost_to_slow_devices(const DiagnosisInput& in, bool is_replica) {
  IdealizedRuns& ideal = in.idealized;
  const Seconds steady = ideal.without(Cost::Slowdowns);
  Seconds types = steady - ideal.without(kSlowDevices);
  if (ideal.stages_are_comparable())
    types = std::min(types, steady - ideal.without(Cost::Slowdowns | Cost::UnequalStages));
  else if (!is_replica)
    types = {};
  return in.period - steady + std::max(types, Seconds{});
}

}  // namespace

/// A device that computes longer than the fastest type of the plan would: a straggler, or the slower of two replicas.
std::optional<Finding> slow_device(const DiagnosisInput& in) {
  const DeviceId slow = slowest_device(in);
  constexpr double kNoticeable = 1.02;
  if (!slow.valid() || in.idealized.slowness(slow) < kNoticeable) return {};
  StageId stage;
  double fastest_replica = in.idealized.slowness(slow);
  for (const StageId s : in.plan().stages.ids()) {
    const auto& devices = in.plan().stages[s].leaders;
    if (std::find(devices.begin(), devices.end(), slow) == devices.end()) continue;
    stage = s;
    for (const DeviceId d : devices) fastest_replica = std::min(fastest_replica, in.idealized.slowness(d));
  }
  const DeviceId culprit = slow_member(in, slow);
  const std::string& name = in.cluster().devices[culprit].name;
  const double slowness = in.idealized.slowness(slow);
  const bool is_replica = fastest_replica * kNoticeable < slowness;
  const Seconds lost = lost_to_slow_devices(in, is_replica);
  Finding f = finding(in, is_replica ? "uneven-replicas" : "slow-device", name, lost);
  f.sentence = is_replica
                   ? fmt::format(
                         "{} computes {:.2f} times as long as the fastest replica of {}, and the gradients of all "
                         "replicas wait for it: {} of the period.",
                         name, slowness / fastest_replica, stage_text(in, stage), percent(f.share))
                   : fmt::format(
                         "{} computes {:.2f} times as long as the fastest devices of the plan would, and the others "
                         "wait for it: {} of the period.",
                         name, slowness, percent(f.share));
  suggest(in, culprit, f);
  return f;
}

}  // namespace stagecraft::diagnosis
