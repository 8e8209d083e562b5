#include "sim/experiment/remarks.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "sim/core/counted.hpp"
#include "sim/experiment/magnitudes.hpp"
#include "sim/plan/ties.hpp"

namespace stagecraft {
namespace {

using Devices = std::set<DeviceId>;

/// Whether the file says which devices work.
bool names_devices(const config::Value& plan) {
  return !plan.is_map() || plan.has("devices") || !plan.has("stages") || !plan.at("stages").items.empty();
}

void add_idle_devices(const PlannedExperiment& p, std::vector<std::string>& lines) {
  Devices used;
  for (const Stage& stage : p.plan.stages) used.insert(stage.devices.begin(), stage.devices.end());
  const std::size_t all = p.cluster().devices.size();
  if (used.size() >= all || used.empty() || names_devices(p.experiment.source->at("plan"))) return;
  std::string line =
      fmt::format("{} of {} have nothing to do", all - used.size(), counted(static_cast<std::int64_t>(all), "device"));
  const auto stages = static_cast<std::size_t>(p.plan.different_stages());
  if (stages > used.size() && stages % used.size() == 0)
    line += fmt::format(": {} puts {} stages on a device, plan.stages={} would use all", p.experiment.schedule.name(),
                        stages / used.size(), all * (stages / used.size()));
  lines.push_back(line);
}

/// An order from a file may hold forwards alone.
bool has_backwards(const Schedule& schedule) {
  return std::any_of(schedule.devices.begin(), schedule.devices.end(), [](const auto& row) {
    return std::any_of(row.begin(), row.end(), [](const Op& op) { return op.kind != OpKind::Forward; });
  });
}

Bytes unexchanged_gradients(const PlannedExperiment& p, bool trains) {
  Bytes apart;
  if (!p.plan.ties.empty() || !trains) return apart;
  for (const Tie& tie : ties_of(p.plan, p.model())) {
    std::set<Devices> holders;
    for (const StageId stage : tie.stages) {
      const std::vector<DeviceId>& devices = p.plan.stage(stage).devices;
      holders.insert(Devices(devices.begin(), devices.end()));
    }
    if (holders.size() > 1) apart += tie.gradient;
  }
  return apart;
}

std::vector<std::string> remarks(const PlannedExperiment& p, bool trains) {
  std::vector<std::string> lines = odd_magnitudes(p.cluster());
  add_idle_devices(p, lines);
  if (const Bytes apart = unexchanged_gradients(p, trains); apart.value > 0)
    lines.push_back(
        fmt::format("{:.4g} weights are tied between stages on different devices; the exchange of their gradients ({} "
                    "for each update) is simulated only where a schedule flushes, which {} does not",
                    apart.value / p.model().precision.gradient, to_text(apart), p.experiment.schedule.name()));
  return lines;
}

}  // namespace

std::vector<std::string> remarks(const PlannedExperiment& p) { return remarks(p, p.experiment.schedule.def->trains); }
std::vector<std::string> remarks(const CompiledExperiment& c) { return remarks(c, has_backwards(c.schedule)); }

std::vector<std::string> remarks(const Experiment& e) {
  try {
    return remarks(plan_experiment(e));
  } catch (const InputError&) {
  } catch (const Infeasible&) {
  }
  return odd_magnitudes(*e.cluster);
}

Bytes unexchanged_gradients(const CompiledExperiment& c) { return unexchanged_gradients(c, has_backwards(c.schedule)); }

}  // namespace stagecraft
