// The planner `pipedream`: stages, replicas of stages and their servers by PipeDream's dynamic program, level by level;
// chain_partition/pipedream.cpp has the search.

#include <fmt/core.h>

#include <algorithm>

#include "sim/core/text.hpp"

#include "sim/planners/chain_partition/mixed.hpp"
#include "sim/planners/chain_partition/planning.hpp"

namespace stagecraft::planners {
namespace {

config::MapSpec pipedream_fields() {
  config::MapSpec spec{"Stages with replicas by PipeDream's dynamic program.", chain_partition::pipedream_fields()};
  spec.fields.push_back(config::list("machines", config::integer("count", 1, 1e6))
                            .optional()
                            .or_alone()
                            .doc("Devices of each server, then servers of each group, and so on; [16] is one level of "
                                 "16 devices. Stages have whole servers or are inside one. Default: the hosts of the "
                                 "cluster; with share: micro_batches also all devices as one level."));
  spec.fields.push_back(config::list("bandwidth", config::quantity("rate", config::Dimension::Bandwidth))
                            .optional()
                            .or_alone()
                            .doc("Bandwidth of each of these levels. Default: the slowest link between neighbors."));
  return spec;
}

const config::MapSpec kPipedreamFields = pipedream_fields();

const chain_partition::PipeDreamPlannerOptions& own_options(const PlannerInput& input) {
  return input.options.options<chain_partition::PipeDreamPlannerOptions>();
}

/// Whether neighbors in groups of this size are of one type each.
bool one_type_in_each(const chain_partition::Types& types, std::size_t group) {
  for (std::size_t d = 0; d < types.type_of.size(); ++d)
    if (types.type_of[d] != types.type_of[d / group * group]) return false;
  return true;
}

std::vector<int> machines_of(const PlannerInput& input, const std::vector<DeviceId>& devices,
                             const chain_partition::Types& types) {
  const auto device_count = static_cast<int>(devices.size());
  const auto& given = own_options(input).machines;
  if (!given) {
    const int each = chain_partition::devices_of_node(input.cluster, devices);
    const bool flat = each == 1 || each == device_count || !one_type_in_each(types, each);
    return flat ? std::vector<int>{device_count} : std::vector<int>{each, device_count / each};
  }
  const std::vector<int>& machines = *given;
  const Where where = input.options.where("machines");
  double product = 1;
  for (const int count : machines) product *= count;
  if (machines.empty() || product != device_count)
    throw InputError({{where, "plan.machines",
                       fmt::format("the product of the levels is {}, but the plan uses {}", product,
                                   pluralize(device_count, "device")),
                       fmt::format("write numbers whose product is {}", device_count), "machines"}});
  if (const int inside = device_count / machines.back(); !one_type_in_each(types, inside))
    throw Infeasible(
        {where, "plan.machines",
         fmt::format("{} neighbors are one machine of the last level, but not all of one type of device", inside),
         fmt::format("name devices of one type consecutively in plan.devices, write machines: [{}], or take the "
                     "planner 'spp', which needs no levels",
                     device_count),
         "machines"});
  return machines;
}

/// Bandwidth of a level whose machines have `inside` devices each: the option, or the slowest link of neighbors.
double bandwidth_of(const PlannerInput& input, std::size_t level, const std::vector<DeviceId>& devices,
                    std::size_t group, std::size_t inside) {
  const auto& given = own_options(input).bandwidth;
  return given ? (*given)[level].value : chain_partition::ring_bandwidth(input.cluster, devices, group, inside);
}

std::vector<chain_partition::Level> levels_of(const PlannerInput& input, const std::vector<DeviceId>& devices,
                                              const std::vector<int>& machines, const CommonUnit& unit) {
  const auto& given = own_options(input).bandwidth;
  if (given && given->size() != machines.size())
    throw InputError(
        {{input.options.where("bandwidth"), "plan.bandwidth",
          fmt::format("{} for {}", pluralize(std::ssize(*given), "rate"), pluralize(std::ssize(machines), "level")),
          "one for each level, innermost first", "bandwidth"}});
  std::vector<chain_partition::Level> levels;
  std::size_t inside = 1;
  for (std::size_t l = 0; l < machines.size(); ++l) {
    const std::size_t group = inside * machines[l];
    levels.push_back({machines[l], unit.rate(bandwidth_of(input, l, devices, group, inside))});
    inside = group;
  }
  return levels;
}

/// Searches over the machines of the last level by type; each type has separate links on the levels inside a machine.
std::optional<chain_partition::FoundPipeline> search_mixed(const PlannerInput& input,
                                                           const std::vector<DeviceId>& devices,
                                                           const chain_partition::Types& types,
                                                           chain_partition::WorkInUnit work,
                                                           chain_partition::PipeDreamOptions options) {
  if (!own_options(input).bandwidth)
    options.levels.back().bandwidth = work.unit.rate(chain_partition::slowest_between(input.cluster, devices));
  const std::size_t inside = devices.size() / options.levels.back().machines;
  std::vector<std::vector<chain_partition::Level>> inner;
  for (std::size_t t = 0; t < types.types.size(); ++t) {
    std::vector<DeviceId> same_type;
    for (std::size_t d = 0; d < devices.size(); ++d)
      if (types.type_of[d] == static_cast<int>(t)) same_type.push_back(devices[d]);
    inner.emplace_back(options.levels.begin(), options.levels.end() - 1);
    std::size_t within = 1;
    for (std::size_t l = 0; l < inner.back().size(); ++l) {
      const std::size_t group = within * inner.back()[l].machines;
      inner.back()[l].bandwidth = work.unit.rate(bandwidth_of(input, l, same_type, group, within));
      within = group;
    }
  }
  work.mixed.type_of.clear();
  for (std::size_t d = 0; d < devices.size(); d += inside) work.mixed.type_of.push_back(types.type_of[d]);
  return chain_partition::search_pipedream(work.mixed, options, inner);
}

/// The levels to search. Numbers of replicas that divide the micro-batches often do not fill servers, so all devices
/// are one level as well, unless the options say which levels there are.
std::vector<std::vector<int>> levels_to_try(const PlannerInput& input, const std::vector<DeviceId>& devices,
                                            const chain_partition::Types& types) {
  std::vector<std::vector<int>> tries{machines_of(input, devices, types)};
  const bool given = own_options(input).machines || own_options(input).bandwidth;
  if (input.options.share == Share::MicroBatches && !given && tries.front().size() > 1)
    tries.push_back({static_cast<int>(devices.size())});
  return tries;
}

/// The fastest pipeline on any of these levels; nothing when none is allowed.
std::optional<chain_partition::FoundPipeline> search_levels(const PlannerInput& input,
                                                            const std::vector<DeviceId>& devices,
                                                            const chain_partition::Types& types,
                                                            const chain_partition::WorkInUnit& work,
                                                            const std::vector<std::vector<int>>& tries,
                                                            chain_partition::PipeDreamOptions options) {
  std::optional<chain_partition::FoundPipeline> best;
  std::int64_t states = 0;
  bool exhaustive = true;
  for (const std::vector<int>& machines : tries) {
    options.levels = levels_of(input, devices, machines, work.unit);
    auto pipeline = types.mixed() ? search_mixed(input, devices, types, work, options)
                                  : chain_partition::search_pipedream(work.mixed.by_type.front(), options);
    if (!pipeline) continue;
    states += pipeline->states;
    exhaustive = exhaustive && pipeline->exhaustive;
    if (!best || pipeline->seconds < best->seconds) best = std::move(pipeline);
  }
  if (best) best->states = states, best->exhaustive = exhaustive;
  return best;
}

std::string reason_for_limit(const std::vector<std::vector<int>>& tries, const chain_partition::Types& types) {
  std::string reason = "the search was exhaustive";
  if (tries.front().size() == 1) return reason;
  reason += ", with stages on whole machines of each level";
  if (types.mixed()) reason += " and replicas on servers of one type each";
  return tries.size() > 1 ? reason + ", and with all devices as one level" : reason;
}

Planned plan_pipedream(const PlannerInput& input) {
  const std::vector<DeviceId> devices = chain_partition::devices_of(input);
  const chain_partition::Types types = chain_partition::types_of(input.cluster, devices);
  const chain_partition::WorkInUnit work = chain_partition::workload_of(input, types);
  chain_partition::PipeDreamOptions options = chain_partition::pipedream_rules(input);
  const std::vector<std::vector<int>> tries = levels_to_try(input, devices, types);
  auto pipeline = search_levels(input, devices, types, work, tries, options);
  // Micro-batches that replicas cannot divide leave devices idle.
  const bool all_used = pipeline || options.shared == 0 || options.fewer;
  if (!all_used) {
    options.fewer = true;
    pipeline = search_levels(input, devices, types, work, tries, options);
  }
  if (!pipeline) chain_partition::refuse(input, work.mixed.by_type.front(), devices.size());
  Planned result = chain_partition::planned(input, work, *pipeline, devices);
  result.model_limit = result.predicted;
  result.limit_reason = reason_for_limit(tries, types);
  if (!all_used) chain_partition::note_idle_devices(result, input);
  if (!pipeline->exhaustive) set_heuristic(result, input, chain_partition::kLineOfDevices);
  return result;
}

}  // namespace

extern const PlannerDef pipedream{
    .name = "pipedream",
    .summary =
        "PipeDream's search: stages with replicas that minimize the slowest stage, on servers of devices of any types.",
    .source = "Narayanan et al., PipeDream, SOSP 2019; msr-fiddle/pipedream",
    .fields = &kPipedreamFields,
    .plan = plan_pipedream,
    .read = chain_partition::read_pipedream,
};

}  // namespace stagecraft::planners
