// Stages, replicas of stages and their servers by PipeDream's dynamic programme, level by level.

#include <fmt/format.h>

#include <algorithm>

#include "sim/plan/msr/planning.hpp"

namespace stagecraft::planners {
namespace {

config::MapSpec fields() {
  config::MapSpec spec{"Stages with replicas by PipeDream's dynamic programme.", msr::pipedream_fields()};
  spec.fields.push_back(config::list("machines", config::integer("count", 1, 1e6))
                            .optional()
                            .doc("Devices of each server, then servers, then groups of servers; [16] alone knows no "
                                 "servers; left out: the hosts of the cluster."));
  spec.fields.push_back(config::list("bandwidth", config::quantity("rate", config::Dimension::Bandwidth))
                            .optional()
                            .doc("Of each of those levels; left out: the slowest link that neighbours cross."));
  return spec;
}

const config::MapSpec kFields = fields();

std::vector<int> machines_of(const PlannerInput& input, const std::vector<DeviceId>& devices) {
  const auto all = static_cast<int>(devices.size());
  const config::Value* given = input.options.find("machines");
  if (!given) {
    const int each = msr::devices_of_host(input.cluster, devices);
    return each == 1 || each == all ? std::vector<int>{all} : std::vector<int>{each, all / each};
  }
  std::vector<int> machines;
  double product = 1;
  for (const config::Value& count : given->items) {
    machines.push_back(config::as_int(count));
    product *= machines.back();
  }
  if (machines.empty() || product != all)
    throw InputError(
        {{given->where, "plan.machines", fmt::format("the levels have {} devices, but {} are to be used", product, all),
          fmt::format("write numbers whose product is {}", all), "machines"}});
  return machines;
}

/// Levels with their links. Micro-batches are divided among replicas of all levels together, so outer levels have what
/// the inner ones may leave.
std::vector<msr::Level> levels_of(const PlannerInput& input, const std::vector<DeviceId>& devices) {
  const std::vector<int> machines = machines_of(input, devices);
  const config::Value* given = input.options.find("bandwidth");
  if (given && given->items.size() != machines.size())
    throw InputError(
        {{given->where, "plan.bandwidth", fmt::format("{} rates for {} levels", given->items.size(), machines.size()),
          "one for each level, innermost first", "bandwidth"}});
  std::vector<msr::Level> levels;
  std::size_t inside = 1;
  int most = msr::most_replicas(input);
  for (std::size_t l = 0; l < machines.size(); ++l) {
    const std::size_t group = inside * static_cast<std::size_t>(machines[l]);
    const double rate = given ? config::as_bandwidth(given->items[l]).value
                              : msr::ring_bandwidth(input.cluster, devices, group, inside);
    levels.push_back({machines[l], rate, std::min(machines[l], most)});
    most /= levels.back().most_replicas;
    inside = group;
  }
  return levels;
}

Planned plan_pipedream(const PlannerInput& input) {
  const std::vector<DeviceId> devices = msr::equal_devices(input);
  const msr::Workload work = msr::workload_of(input, msr::type_of(input, devices));
  msr::PipeDreamOptions options = msr::read_pipedream(input.options);
  options.levels = levels_of(input, devices);
  const auto found = msr::search_pipedream(work, options);
  if (!found) msr::refuse(input, work, devices.size());
  Planned result = msr::planned(input, work, *found, devices);
  const bool all_replicas = options.levels.size() == 1 || msr::most_replicas(input) >= static_cast<int>(devices.size());
  result.lower_bound =
      all_replicas ? result.predicted : Seconds{work.seconds.back() / static_cast<double>(devices.size())};
  result.bound_reason = all_replicas ? "the search was exhaustive" : "all work shared evenly";
  return result;
}

}  // namespace

extern const PlannerDef pipedream{
    .name = "pipedream",
    .summary = "Stages with replicas and least time of the slowest, on devices in servers, by PipeDream's programme.",
    .source = "Narayanan et al., PipeDream, SOSP 2019; msr-fiddle/pipedream",
    .fields = &kFields,
    .plan = plan_pipedream,
};

}  // namespace stagecraft::planners
