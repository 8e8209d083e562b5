#include "sim/run/remarks.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/core/counted.hpp"

namespace stagecraft {
namespace {

using Devices = std::set<DeviceId>;

/// Whether the file says which devices work.
bool names_devices(const config::Value& tree) {
  const config::Value& plan = tree.at("plan");
  return !plan.is_map() || plan.has("devices") || !plan.has("stages") || !plan.at("stages").items.empty();
}

void add_idle_devices(const Scenario& s, const Prepared& p, std::vector<std::string>& lines) {
  Devices used;
  for (const Stage& stage : p.plan.stages) used.insert(stage.devices.begin(), stage.devices.end());
  const std::size_t all = p.cluster.devices.size();
  if (used.size() >= all || used.empty() || names_devices(s.tree)) return;
  std::string line =
      fmt::format("{} of {} have nothing to do", all - used.size(), counted(static_cast<std::int64_t>(all), "device"));
  const auto stages = static_cast<std::size_t>(p.plan.different_stages());
  if (stages > used.size() && stages % used.size() == 0)
    line += fmt::format(": {} puts {} stages on a device, plan.stages={} would use all", s.schedule,
                        stages / used.size(), all * (stages / used.size()));
  lines.push_back(line);
}

bool trains(const Prepared& p) {
  const auto& rows = p.schedule.devices;
  return std::any_of(rows.begin(), rows.end(), [](const auto& row) {
    return std::any_of(row.begin(), row.end(), [](const Op& op) { return op.kind != OpKind::Forward; });
  });
}

void add_tied_weights(const Prepared& p, std::vector<std::string>& lines) {
  std::map<std::string, double> parameters;
  std::map<std::string, std::set<Devices>> holders;
  for (const Stage& stage : p.plan.stages)
    for (const LayerId id : stage.layers) {
      const Layer& layer = p.model.layers[static_cast<std::size_t>(id)];
      if (layer.tie.empty()) continue;
      parameters[layer.tie] = std::max(parameters[layer.tie], layer.parameters);
      holders[layer.tie].insert(Devices(stage.devices.begin(), stage.devices.end()));
    }
  double apart = 0;
  for (const auto& [tie, devices] : holders) apart += devices.size() > 1 ? parameters[tie] : 0;
  if (apart > 0 && trains(p))
    lines.push_back(
        fmt::format("{:.4g} weights are tied between stages on different devices; the exchange of their "
                    "gradients is not simulated",
                    apart));
}

}  // namespace

std::vector<std::string> remarks(const Scenario& s, const Prepared& p) {
  std::vector<std::string> lines;
  add_idle_devices(s, p, lines);
  add_tied_weights(p, lines);
  return lines;
}

}  // namespace stagecraft
