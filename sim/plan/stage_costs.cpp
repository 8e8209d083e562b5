#include "sim/plan/stage_costs.hpp"

#include <map>

#include "sim/plan/overlap.hpp"
#include "sim/plan/slow_links.hpp"

namespace stagecraft {
namespace {

/// Where no other stage has a part in the sum of gradients over a context or an expert group, the update contains it.
void add_sum_in_group(const CostTable& costs, StageCost& cost) {
  if (!cost.collectives) return;
  const Seconds sum = (1 - costs.rules().software.data_overlap) * cost_of(cost.collectives->gradient_sum);
  cost.update_parts.data += sum;
  cost.update += sum;
}

}  // namespace

StageCosts stage_costs(const Plan& plan, const CostTable& costs, const PricingChanges& changes) {
  StageCosts result;
  for (const Stage& stage : plan.stages) {
    std::map<std::pair<DeviceTypeId, Load>, StageCost> cost_of;  // Most replicas are equal.
    std::vector<StageCost> replicas;
    for (std::size_t r = 0; r < stage.leaders.size(); ++r) {
      const DeviceId device = stage.leaders[r];
      const DeviceTypeId type = changes.type_of ? changes.type_of(device) : costs.cluster().devices[device].type;
      const Load load = load_at_once(stage, static_cast<int>(r));
      const auto [entry, is_new] = cost_of.try_emplace({type, load});
      if (is_new) {
        const MinTime min_time = changes.equal_links ? MinTime{} : min_times_on_links(stage, costs, type);
        entry->second = stage_cost(costs, stage.shape, type, load, min_time);
        if (stage.replicas() == 1 && !stage.twin.valid()) add_sum_in_group(costs, entry->second);
      }
      replicas.push_back(entry->second);
    }
    result.add(replicas);
  }
  return result;
}

StageCosts uniform_costs(const Plan& plan, const StageCost& cost) {
  StageCosts result;
  for (const Stage& stage : plan.stages) result.add(std::vector<StageCost>(stage.leaders.size(), cost));
  return result;
}

}  // namespace stagecraft
