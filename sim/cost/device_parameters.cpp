// Which parameters each device of a stage has: its part of what is divided, and tied ones once.

#include "sim/cost/device_parameters.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace stagecraft {
namespace {

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

DeviceParameters device_parameters(const std::vector<LayerId>& layers, const Degrees& degrees,
                                   const ModelGraph& model) {
  DeviceParameters sum;
  const auto add = [&](LayerId id) {
    const Layer& layer = model.layers[id];
    double total = 0, dense = 0, experts = 0;
    for (const Operation& op : layer.operations) {
      const ParametersByClass counts = parameters_by_class(op);
      total += op.parameters();
      dense += counts[ParameterClass::Divided] / degrees.tensor + counts[ParameterClass::Replicated];
      experts += counts[ParameterClass::Expert] / (degrees.expert * degrees.expert_tensor);
    }
    // The operations of a layer with tied weights list them too; it may own less, or its amount may be given.
    const double share = total > 0 ? layer.parameters / total : 0;
    const bool is_whole = total == 0 || (experts == 0 && !degrees.divides());  // To the last bit what the layer says.
    sum.dense += is_whole ? layer.parameters : share * dense;
    sum.experts += share * experts;
  };
  std::set<std::string> counted_ties;
  for (const LayerId id : layers) {
    add(id);
    const std::string& tie = model.layers[id].tie;
    if (tie.empty() || !counted_ties.insert(tie).second) continue;
    const LayerId owner = owner_of(tie, model);
    if (std::find(layers.begin(), layers.end(), owner) == layers.end()) add(owner);
  }
  return sum;
}

DeviceParameters device_parameters(const StageShape& stage, const ModelGraph& model) {
  DeviceParameters sum = device_parameters(stage.layers, stage.degrees, model);
  if (stage.vocabulary.empty()) return sum;
  const DeviceParameters part = device_parameters(stage.vocabulary, vocabulary_shape(stage).degrees, model);
  return {sum.dense + part.dense, sum.experts + part.experts};
}

}  // namespace stagecraft
