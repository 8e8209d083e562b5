// The cost of every stage of a plan on each of its devices; schedules and programs take their times from here.

#include "sim/plan/stage_costs.hpp"

#include <map>

#include "sim/plan/overlap.hpp"
#include "sim/plan/slow_links.hpp"

namespace stagecraft {
namespace {

/// Where no other stage has a part in the sum of gradients over a context or an expert group, the update contains it.
void add_sum_in_group(const CostTable& costs, StageCost& cost) {
  if (!cost.collectives) return;
  const Seconds sum = exposed_sum(cost.collectives->gradient_sum, costs.rules().software.hides(Overlap::Gradients));
  cost.update_parts.data += sum;
  cost.update += sum;
}

/// What the ops of a stage with this task take. What an update needs stays with the weight gradient.
StageCost task_cost(StageTask task, const StageCost& whole) {
  StageCost cost;
  const auto take = [&](Seconds time, const TimeByClass& classes, Bytes traffic) {
    cost.forward = time, cost.passes.forward = classes, cost.traffic.forward = traffic;
  };
  const EachPass<TimeByClass>& passes = whole.passes;
  switch (task) {
    case StageTask::Whole:
      return whole;
    case StageTask::Forward:
      take(whole.forward, passes.forward, whole.traffic.forward);
      break;
    case StageTask::InputGradient:
      take(whole.input_gradient, passes.input_gradient, whole.traffic.input_gradient);
      break;
    case StageTask::WeightGradient:
      take(whole.weight_gradient, passes.weight_gradient, whole.traffic.weight_gradient);
      cost.memory.gradients = whole.memory.gradients, cost.memory.optimizer = whole.memory.optimizer;
      break;
    case StageTask::Update:
      take(whole.update, whole.update_parts, whole.update_traffic);
      return cost;
    case StageTask::TakeWeights:
      return cost;
  }
  cost.memory.weights = whole.memory.weights;
  return cost;
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
        entry->second = task_cost(stage.task, stage_cost(costs, stage.shape, type, load, min_time));
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
