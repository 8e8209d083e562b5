#include "sim/plan/stage_cost.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "sim/plan/overlap.hpp"
#include "sim/plan/recomputation.hpp"

namespace stagecraft {
namespace {

/// What enters the stage for one sample: each foreign tensor once, and what the loader puts into the model's inputs.
Bytes entering(const Stage& stage, const ModelGraph& model) {
  const std::set<LayerId> own(stage.layers.begin(), stage.layers.end());
  std::set<LayerId> seen;
  Bytes total;
  for (LayerId id : stage.layers) {
    const Layer& layer = model.layers[id];
    for (LayerId input : layer.inputs)
      if (own.count(input) == 0 && seen.insert(input).second) total += model.layers[input].output;
    const bool loaded = layer.inputs.empty() && layer.parameters == 0 && layer.forward.value == 0 && !layer.times &&
                        layer.times_on.empty();
    if (loaded) total += layer.output;
  }
  return total;
}

/// The layer of a tie that owns what the others share: they may own a bias.
LayerId owner_of(const std::string& tie, const ModelGraph& model) {
  LayerId owner;
  double most = -1;
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    if (const Layer& layer = model.layers[i]; layer.tie == tie && layer.parameters > most)
      owner = LayerId{static_cast<std::int32_t>(i)}, most = layer.parameters;
  return owner;
}

/// Parameters the stage keeps: its own, and one copy of those that its layers share with a layer of another stage.
double parameters_of(const Stage& stage, const ModelGraph& model) {
  std::set<std::string> held;
  double total = 0;
  for (LayerId id : stage.layers) {
    const Layer& layer = model.layers[id];
    total += layer.parameters;
    if (layer.tie.empty() || !held.insert(layer.tie).second) continue;
    const LayerId owner = owner_of(layer.tie, model);
    if (std::find(stage.layers.begin(), stage.layers.end(), owner) == stage.layers.end())
      total += model.layers[owner].parameters;
  }
  return total;
}

/// What an update needs stays with the weight gradient.
StageCost task_cost(StageTask task, const StageCost& whole) {
  StageCost cost;
  if (task == StageTask::TakeWeights) return cost;
  cost.forward = task == StageTask::Forward         ? whole.forward
                 : task == StageTask::InputGradient ? whole.input_gradient
                 : task == StageTask::Update        ? whole.update
                                                    : whole.weight_gradient;
  cost.traffic.forward = task == StageTask::Forward         ? whole.traffic.forward
                         : task == StageTask::InputGradient ? whole.traffic.input_gradient
                         : task == StageTask::Update        ? whole.update_traffic
                                                            : whole.traffic.weight_gradient;
  if (task == StageTask::Update) return cost;
  cost.weights = whole.weights;
  if (task == StageTask::WeightGradient) cost.gradients = whole.gradients, cost.optimizer = whole.optimizer;
  return cost;
}

StageCost replica_cost(const Stage& stage, int replica, const CostTable& costs) {
  const ModelGraph& model = costs.model();
  const auto samples = static_cast<double>(samples_at_once(stage, replica));
  const DeviceId device = stage.devices[replica];
  const int type = costs.cluster().devices[device].type;

  StageCost cost;
  const double parameters = parameters_of(stage, model);
  for (LayerId id : stage.layers) {
    const LayerCost one = costs.at(id, type, samples);
    cost.forward += one.forward;
    cost.input_gradient += one.input_gradient;
    cost.weight_gradient += one.weight_gradient;
    cost.traffic.forward += one.traffic.forward;
    cost.traffic.input_gradient += one.traffic.input_gradient;
    cost.traffic.weight_gradient += one.traffic.weight_gradient;
    const LayerMemory memory = layer_memory(stage, model, id, samples);
    cost.stash += memory.kept + memory.remade_with_stage;
    cost.remade = std::max(cost.remade, memory.remade_alone);
    if (!stage.recompute_cores) continue;  // A whole forward that runs again is an op of its own.
    cost.input_gradient += share_again(stage, one) * one.forward;
    cost.traffic.input_gradient += share_again(stage, one) * one.traffic.forward;
  }
  const Seconds operation = costs.operation(type);
  cost.backward = cost.input_gradient + cost.weight_gradient + operation;
  cost.forward += operation;
  cost.input_gradient += operation;
  cost.weight_gradient += operation;
  cost.recompute = cost.forward;
  cost.update = costs.update(parameters, type) + operation;
  cost.touch = costs.touch(parameters, type);
  cost.update_traffic = costs.update_traffic(parameters, type);
  cost.touch_traffic = costs.touch_traffic(parameters, type);
  cost.weights = {parameters * model.precision.weight};
  cost.gradients = {parameters * model.precision.gradient};
  cost.optimizer = {parameters * model.precision.optimizer};
  cost.gradient_traffic = cost.gradients;
  cost.boundary = entering(stage, model) * samples;
  return stage.task == StageTask::Whole ? cost : task_cost(stage.task, cost);
}

}  // namespace

StageCosts stage_costs(const Plan& plan, const CostTable& costs) {
  StageCosts result;
  for (const Stage& stage : plan.stages) {
    std::vector<StageCost>& replicas = result.emplace_back();
    for (int r = 0; r < static_cast<int>(stage.devices.size()); ++r) replicas.push_back(replica_cost(stage, r, costs));
  }
  return result;
}

StageCosts uniform_costs(const Plan& plan, const StageCost& cost) {
  StageCosts result;
  for (const Stage& stage : plan.stages) result.emplace_back(stage.devices.size(), cost);
  return result;
}

}  // namespace stagecraft
