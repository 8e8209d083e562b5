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

/// The costs of all stages, of which each replica has the load that `load_of` says.
template <class LoadOf>
StageCosts costs_with(const Plan& plan, const CostTable& costs, const PricingChanges& changes, LoadOf&& load_of) {
  StageCosts result;
  std::size_t devices = 0;
  for (const Stage& stage : plan.stages) devices += stage.leaders.size();
  result.reserve(devices);
  for (const Stage& stage : plan.stages) {
    std::map<std::pair<DeviceTypeId, Load>, StageCost> cost_of;  // Most replicas are equal.
    std::vector<StageCost> replicas;
    replicas.reserve(stage.leaders.size());
    for (std::size_t r = 0; r < stage.leaders.size(); ++r) {
      const DeviceId device = stage.leaders[r];
      const DeviceTypeId type = changes.type_of ? changes.type_of(device) : costs.cluster().devices[device].type;
      const Load load = load_of(stage, static_cast<int>(r));
      const auto [entry, is_new] = cost_of.try_emplace({type, load});
      if (is_new) {
        const MinTime min_time = changes.equal_links ? MinTime{} : min_times_on_links(stage, costs, type);
        entry->second = task_cost(stage.task, stage_cost(costs, stage.shape, type, load, min_time));
        if (plan.loads.slices > 1) keep_keys_and_values(costs, stage.shape, load, entry->second.memory);
        if (stage.replicas() == 1 && !stage.twin.valid()) add_sum_in_group(costs, entry->second);
      }
      replicas.push_back(entry->second);
    }
    result.add(replicas);
  }
  return result;
}

/// The times of the ops as the mean of the micro-batches of a replica. Costs are no linear function of a load: a
/// roofline makes the cost of the mean load smaller than this mean, an efficiency that grows with size makes it larger.
void take_mean_times(const Plan& plan, StageId s, int replica, const StageCosts& costs, StageCost& mean) {
  std::vector<int> counts(plan.loads.classes.size(), 0);
  const auto micro_batches = static_cast<int>(plan.loads.class_of.size()) / plan.loads.replicas;
  for (int j = 0; j < micro_batches; ++j) ++counts[plan.loads.at(j, replica)];
  StageCost sum;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    const double share = static_cast<double>(counts[c]) / micro_batches;
    const StageCost& cost = costs.at(s, replica, static_cast<int>(c));
    sum.forward += share * cost.forward, sum.backward += share * cost.backward;
    sum.input_gradient += share * cost.input_gradient, sum.weight_gradient += share * cost.weight_gradient;
    sum.recompute += share * cost.recompute;
    for (const auto pass :
         {&EachPass<TimeByClass>::forward, &EachPass<TimeByClass>::input_gradient,
          &EachPass<TimeByClass>::weight_gradient, &EachPass<TimeByClass>::backward, &EachPass<TimeByClass>::recompute})
      sum.passes.*pass += share * (cost.passes.*pass);
  }
  mean.forward = sum.forward, mean.backward = sum.backward, mean.recompute = sum.recompute;
  mean.input_gradient = sum.input_gradient, mean.weight_gradient = sum.weight_gradient;
  mean.passes = sum.passes;
}

}  // namespace

StageCosts stage_costs(const Plan& plan, const CostTable& costs, const PricingChanges& changes) {
  StageCosts result = costs_with(plan, costs, changes, load_at_once);
  for (const Load& load : plan.loads.classes)
    result.add_class(load.samples > 0 ? costs_with(plan, costs, changes, [&](const Stage&, int) { return load; })
                                      : uniform_costs(plan, {}));
  if (plan.loads.classes.size() < 2) return result;
  for (const StageId s : plan.stages.ids())
    for (int r = 0; r < std::ssize(plan.stage(s).leaders); ++r) take_mean_times(plan, s, r, result, result.at(s, r));
  return result;
}

StageCosts uniform_costs(const Plan& plan, const StageCost& cost) {
  StageCosts result;
  for (const Stage& stage : plan.stages) result.add(std::vector<StageCost>(stage.leaders.size(), cost));
  return result;
}

}  // namespace stagecraft
