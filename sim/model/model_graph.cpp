// Sums over a ModelGraph, look-ups by name, and its check.

#include "sim/model/model_graph.hpp"

#include <algorithm>
#include <set>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

double ModelGraph::parameters() const {
  double total = 0;
  for (const Layer& layer : layers) total += layer.parameters;
  return total;
}

Flops ModelGraph::forward() const {
  Flops total;
  for (const Layer& layer : layers) total += layer.forward;
  return total;
}

std::optional<LayerId> ModelGraph::find(const std::string& layer_name) const {
  for (const LayerId i : layers.ids())
    if (layers[i].name == layer_name) return i;
  return std::nullopt;
}

bool Layer::has_shapes() const {
  return !operations.empty() && std::none_of(operations.begin(), operations.end(),
                                             [](const Operation& op) { return op.kind == OperationKind::Tensor; });
}

double active_parameters(const ModelGraph& model, bool with_embedding) {
  double total = 0;
  std::set<std::string> counted;
  for (const Layer& layer : model.layers) {
    double active = layer.operations.empty() ? layer.parameters : 0, idle = 0;
    for (const Operation& op : layer.operations) {
      if (op.kind != OperationKind::Embedding) active += active_parameters(op);
      idle += op.parameters() - active_parameters(op);
    }
    if (with_embedding)
      total += layer.parameters - idle;
    else if (active > 0 && (layer.tie.empty() || counted.insert(layer.tie).second))
      total += active;
  }
  return total;
}

void check_graph(const ModelGraph& model) {
  std::set<std::string> names;
  for (const LayerId i : model.layers.ids()) {
    const Layer& layer = model.layers[i];
    if (!names.insert(layer.name).second) throw InternalError("two layers are called '" + layer.name + "'");
    for (LayerId input : layer.inputs) {
      if (!input.valid() || input >= i)
        throw InternalError("layer '" + layer.name + "' comes before one of its inputs");
    }
  }
}

}  // namespace stagecraft
