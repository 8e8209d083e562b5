#include "sim/plan/stage_costs.hpp"

#include <map>

#include "sim/plan/overlap.hpp"
#include "sim/plan/slow_links.hpp"

namespace stagecraft {
namespace {

/// Where no other stage has a part in the sum of gradients over a context or an expert group, the update contains it.
void add_sum_in_group(const CostTable& costs, const StageShape& shape, DeviceTypeId type, StageCost& cost) {
  if (shape.task != StageTask::Whole) return;
  const DeviceParameters p = device_parameters(shape.layers, shape.degrees, costs.model());
  const Seconds sum = gradient_times(p.dense, p.experts, shape, *costs.rules(), type).sum;
  cost.update_parts.data += sum;
  cost.update += sum;
}

}  // namespace

StageCosts stage_costs(const Plan& plan, const CostTable& costs, const PricingChanges& changes) {
  StageCosts result;
  for (const Stage& stage : plan.stages) {
    std::map<std::pair<DeviceTypeId, std::int64_t>, StageCost> cost_of;  // Key: type and samples; most are equal.
    std::vector<StageCost> replicas;
    for (std::size_t r = 0; r < stage.leaders.size(); ++r) {
      const DeviceId device = stage.leaders[r];
      const DeviceTypeId type = changes.type_of ? changes.type_of(device) : costs.cluster().devices[device].type;
      const std::int64_t samples = samples_at_once(stage, static_cast<int>(r));
      const auto [entry, is_new] = cost_of.try_emplace({type, samples});
      if (is_new) {
        entry->second = stage_cost(costs, stage.shape, type, static_cast<double>(samples));
        if (costs.rules() && !changes.equal_links)
          wait_for_slow_links(stage, costs, type, static_cast<double>(samples), entry->second);
        if (costs.rules() && stage.replicas() == 1 && !stage.twin.valid())
          add_sum_in_group(costs, stage.shape, type, entry->second);
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
