#include "sim/plan/stage_costs.hpp"

#include <map>

#include "sim/plan/overlap.hpp"

namespace stagecraft {
StageCosts stage_costs(const Plan& plan, const CostTable& costs) {
  StageCosts result;
  for (const Stage& stage : plan.stages) {
    std::map<std::pair<DeviceTypeId, std::int64_t>, StageCost> cost_of;  // Key: type and samples; most are equal.
    std::vector<StageCost> replicas;
    for (std::size_t r = 0; r < stage.devices().size(); ++r) {
      const DeviceTypeId type = costs.cluster().devices[stage.devices()[r]].type;
      const std::int64_t samples = samples_at_once(stage, static_cast<int>(r));
      const auto [entry, is_new] = cost_of.try_emplace({type, samples});
      if (is_new) entry->second = stage_cost(costs, stage.shape, type, static_cast<double>(samples));
      replicas.push_back(entry->second);
    }
    result.add(replicas);
  }
  return result;
}

StageCosts uniform_costs(const Plan& plan, const StageCost& cost) {
  StageCosts result;
  for (const Stage& stage : plan.stages) result.add(std::vector<StageCost>(stage.devices().size(), cost));
  return result;
}

}  // namespace stagecraft
