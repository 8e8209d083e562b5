#include "sim/cost/stage_cost.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace stagecraft {
namespace {

/// What enters the stage for one sample: each foreign tensor once, and what the loader puts into the model's inputs.
Bytes entering(const StageShape& stage, const ModelGraph& model) {
  const std::set<LayerId> stage_layers(stage.layers.begin(), stage.layers.end());
  std::set<LayerId> seen;
  Bytes total;
  for (LayerId id : stage.layers) {
    const Layer& layer = model.layers[id];
    for (LayerId input : layer.inputs)
      if (stage_layers.count(input) == 0 && seen.insert(input).second) total += model.layers[input].output;
    const bool loaded = layer.inputs.empty() && layer.parameters == 0 && layer.forward.value == 0 && !layer.times &&
                        layer.times_on.empty();
    if (loaded) total += layer.output;
  }
  return total;
}

/// The layer of a tie that owns what the others share: they may own a bias.
LayerId owner_of(const std::string& tie, const ModelGraph& model) {
  LayerId owner;
  double max_parameters = -1;
  for (const LayerId i : model.layers.ids())
    if (const Layer& layer = model.layers[i]; layer.tie == tie && layer.parameters > max_parameters)
      owner = i, max_parameters = layer.parameters;
  return owner;
}

}  // namespace

double parameters_of(const std::vector<LayerId>& layers, const ModelGraph& model) {
  std::set<std::string> counted_ties;
  double total = 0;
  for (LayerId id : layers) {
    const Layer& layer = model.layers[id];
    total += layer.parameters;
    if (layer.tie.empty() || !counted_ties.insert(layer.tie).second) continue;
    const LayerId owner = owner_of(layer.tie, model);
    if (std::find(layers.begin(), layers.end(), owner) == layers.end()) total += model.layers[owner].parameters;
  }
  return total;
}

namespace {

/// A stage that recomputes all keeps what enters it, if that is less than its stash.
MemoryUnits memory_of(const StageShape& stage, const ModelGraph& model, double parameters, Bytes entering,
                      double samples) {
  MemoryUnits layers;
  for (LayerId id : stage.layers) layers += layer_memory(model, id, stage.recomputation, samples);
  MemoryUnits memory = parameter_memory(parameters, model.precision);
  memory.stash = layers.whole_stash();
  memory.recompute_peak = layers.recompute_peak;
  if (stage.recomputation != Recomputation::Full) return memory;
  const Bytes input_stash = std::min(entering, memory.stash);
  memory.recompute_stash = memory.stash - input_stash;
  memory.stash = input_stash;
  return memory;
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
  cost.memory.weights = whole.memory.weights;
  if (task != StageTask::WeightGradient) return cost;
  cost.memory.gradients = whole.memory.gradients;
  cost.memory.optimizer = whole.memory.optimizer;
  return cost;
}

}  // namespace

StageCost stage_cost(const CostTable& costs, const StageShape& stage, DeviceTypeId device_type, double samples) {
  const ModelGraph& model = costs.model();
  StageCost cost;
  for (LayerId id : stage.layers) {
    const LayerCost one = costs.at(id, device_type, samples);
    cost.forward += one.forward;
    cost.input_gradient += one.input_gradient;
    cost.weight_gradient += one.weight_gradient;
    cost.traffic.forward += one.traffic.forward;
    cost.traffic.input_gradient += one.traffic.input_gradient;
    cost.traffic.weight_gradient += one.traffic.weight_gradient;
    if (stage.recomputation != Recomputation::Selective) continue;  // A whole forward that runs again is an op.
    const double share = recomputed_share(stage.recomputation, one);
    cost.input_gradient += share * one.forward;
    cost.traffic.input_gradient += share * one.traffic.forward;
  }
  const Seconds operation = costs.operation(device_type);
  cost.backward = cost.input_gradient + cost.weight_gradient + operation;
  cost.forward += operation;
  cost.input_gradient += operation;
  cost.weight_gradient += operation;
  cost.recompute = cost.forward;
  const double parameters = parameters_of(stage.layers, model);
  cost.update = costs.update(parameters, device_type) + operation;
  cost.touch = costs.touch(parameters, device_type);
  cost.update_traffic = costs.update_traffic(parameters, device_type);
  cost.touch_traffic = costs.touch_traffic(parameters, device_type);
  cost.entering = entering(stage, model) * samples;
  cost.memory = memory_of(stage, model, parameters, cost.entering, samples);
  return stage.task == StageTask::Whole ? cost : task_cost(stage.task, cost);
}

MemoryUnits parameter_memory(double parameters, const Precision& precision) {
  return {.weights = {parameters * precision.weight},
          .gradients = {parameters * precision.gradient},
          .optimizer = {parameters * precision.optimizer}};
}

MemoryUnits layer_memory(const ModelGraph& model, LayerId id, Recomputation recomputation, double samples) {
  const Layer& layer = model.layers[id];
  MemoryUnits memory = parameter_memory(layer.parameters, model.precision);
  memory.stash = layer.stash * samples;
  if (recomputation == Recomputation::Selective) {
    memory.recompute_peak = layer.core.stash * samples;
    memory.stash -= memory.recompute_peak;
  } else if (recomputation == Recomputation::Full) {
    Bytes inputs;
    for (const LayerId from : layer.inputs) inputs += model.layers[from].output * samples;
    const Bytes input_stash = std::min(inputs, memory.stash);
    memory.recompute_stash = memory.stash - input_stash;
    memory.stash = input_stash;
  }
  return memory;
}

double recomputed_share(Recomputation recomputation, const LayerCost& cost) {
  if (recomputation == Recomputation::Full) return 1;
  return recomputation == Recomputation::Selective ? cost.core : 0;
}

}  // namespace stagecraft
