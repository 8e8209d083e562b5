// Lists how groups may divide the layers, the states and the exchanges of a plan, and on which devices.

#include "sim/search/group_divisions.hpp"

#include <algorithm>
#include <map>

namespace stagecraft {
namespace {

constexpr int kRowsOfContext = 4096;  // Fewest rows of a sequence on a device of a context group.

std::vector<int> powers_of_two_up_to(int limit) {
  std::vector<int> powers;
  for (int n = 1; n <= limit; n *= 2) powers.push_back(n);
  return powers;
}

void add_fastest_types(const PlannedExperiment& p, std::vector<std::vector<DeviceId>>& lists) {
  const CostRules& rules = *p.experiment.rules;
  const auto rate = [&](DeviceTypeId t) { return rules.accelerators[t].formats[rules.format].peak; };
  std::vector<DeviceId> devices;
  for (const DeviceId d : p.cluster().devices.ids()) devices.push_back(d);
  const auto type = [&](DeviceId d) { return p.cluster().devices[d].type; };
  std::stable_sort(devices.begin(), devices.end(),
                   [&](DeviceId a, DeviceId b) { return rate(type(a)) > rate(type(b)); });
  for (std::size_t n = 1; n < devices.size(); ++n) {
    if (rate(type(devices[n])) == rate(type(devices[n - 1]))) continue;
    lists.emplace_back(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(n));
    std::sort(lists.back().begin(), lists.back().end());
  }
}

}  // namespace

std::vector<int> divisors_of(int number) {
  std::vector<int> list;
  for (int n = 1; n <= number; ++n)
    if (number % n == 0) list.push_back(n);
  return list;
}

std::vector<std::vector<DeviceId>> devices_of_groups(const PlannedExperiment& p, const NetworkParts& parts,
                                                     bool for_time) {
  std::vector<std::vector<DeviceId>> lists{{}};
  for (const std::vector<DeviceId>& part : parts.different_parts()) lists.push_back(part);
  if (for_time) {
    add_fastest_types(p, lists);
    return lists;
  }
  const auto total = static_cast<int>(p.cluster().devices.size());
  std::map<DeviceTypeId, std::vector<DeviceId>> types;
  for (const DeviceId d : p.cluster().devices.ids()) types[p.cluster().devices[d].type].push_back(d);
  for (const auto& [type, devices] : types)
    for (int n = 1; n <= std::ssize(devices); ++n)
      if (n < total && (total % n == 0 || (n & (n - 1)) == 0 || n == std::ssize(devices)))
        lists.emplace_back(devices.begin(), devices.begin() + n);
  return lists;
}

std::vector<Degrees> group_divisions(const PlannedExperiment& p, const Degrees& written, int devices) {
  int sequence = 0, experts = 1;
  for (const Layer& layer : p.model().layers)
    for (const Operation& op : layer.operations) {
      if (op.kind == OperationKind::Attention) sequence = std::max(sequence, op.rows);
      if (op.kind == OperationKind::GroupedLinear) experts = std::max(experts, op.experts);
    }
  const int most_context = std::max(1, sequence / kRowsOfContext);
  std::vector<Degrees> divisions;
  for (const int tensor : powers_of_two_up_to(p.experiment.rules->node.devices))
    for (const int context : powers_of_two_up_to(most_context))
      for (const int expert : powers_of_two_up_to(experts))
        for (const int ranks : divisors_of(devices / (tensor * context))) {
          Degrees d = written;
          d.replicas = devices / (tensor * context * ranks);
          d.context = context, d.tensor = tensor, d.expert = expert;
          d.sequence = tensor > 1;
          if (d.replicas == 0 || d.devices() * ranks != devices || d.devices() % expert != 0) continue;
          if (experts > 1 && expert == 1 && tensor > 1) continue;  // Experts are divided before products are.
          divisions.push_back(d);
        }
  return divisions;
}

std::vector<int> shard_groups_of(const PlanSpec& plan, int node_devices, const Degrees& degrees,
                                 StateSharding sharding) {
  if (sharding == StateSharding::None) return {0};
  const int holders = degrees.replicas * degrees.context, on_node = node_devices / degrees.tensor;
  const bool has_choice = plan.shard_within == 0 && sharding == StateSharding::Weights && on_node > degrees.context &&
                          on_node < holders && holders % on_node == 0 &&
                          degrees.expert_replicas() % (holders / on_node) == 0;
  if (!has_choice) return {plan.shard_within};
  return {0, on_node};
}

std::vector<ExpertDispatch> dispatchers_of(const PlanSpec& plan, int node_devices, const Degrees& degrees,
                                           bool is_named) {
  const bool has_choice = degrees.expert > 1 && degrees.tensor * degrees.expert > node_devices;
  if (!has_choice || is_named) return {plan.dispatcher};
  return {ExpertDispatch::AllToAll, ExpertDispatch::PerNode};
}

bool names_dispatcher(const PlanSpec& plan) {
  const config::Value* group = plan.source ? plan.source->find("group") : nullptr;
  const config::Value* dispatcher = group ? group->find("dispatcher") : nullptr;
  return dispatcher && dispatcher->origin.empty();
}

}  // namespace stagecraft
