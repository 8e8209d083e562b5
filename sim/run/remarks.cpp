#include "sim/run/remarks.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "sim/core/counted.hpp"
#include "sim/plan/ties.hpp"
#include "sim/run/magnitudes.hpp"
#include "sim/schedule/builder.hpp"

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

bool trains(const Scenario& s, const Prepared& p) {
  const auto& rows = p.schedule.devices;
  if (rows.empty()) return get_from(schedules::all(), "schedule", s.schedule).trains;
  return std::any_of(rows.begin(), rows.end(), [](const auto& row) {
    return std::any_of(row.begin(), row.end(), [](const Op& op) { return op.kind != OpKind::Forward; });
  });
}

void add_tied_weights(const Scenario& s, const Prepared& p, std::vector<std::string>& lines) {
  const Bytes apart = unexchanged_gradients(s, p);
  if (apart.value > 0)
    lines.push_back(
        fmt::format("{:.4g} weights are tied between stages on different devices; the exchange of their gradients ({} "
                    "for each update) is simulated only where a schedule flushes, which {} does not",
                    apart.value / p.model.precision.gradient, to_text(apart), s.schedule));
}

}  // namespace

std::vector<std::string> remarks(const Scenario& s, const Prepared& p) {
  std::vector<std::string> lines = odd_magnitudes(p.cluster);
  add_idle_devices(s, p, lines);
  add_tied_weights(s, p, lines);
  return lines;
}

std::vector<std::string> remarks(const Scenario& s) {
  try {
    return remarks(s, lay_out(s));
  } catch (const InputError&) {
  } catch (const Infeasible&) {
  }
  return odd_magnitudes(build_cluster(s.tree.at("cluster")));
}

/// Where a schedule flushes their gradients meet, and that takes its time.
Bytes unexchanged_gradients(const Scenario& s, const Prepared& p) {
  Bytes apart;
  if (!p.plan.ties.empty() || !trains(s, p)) return apart;
  for (const Tie& tie : ties_of(p.plan, p.model)) {
    std::set<Devices> holders;
    for (const StageId stage : tie.stages) {
      const std::vector<DeviceId>& devices = p.plan.stage(stage).devices;
      holders.insert(Devices(devices.begin(), devices.end()));
    }
    if (holders.size() > 1) apart += tie.gradient;
  }
  return apart;
}

}  // namespace stagecraft
