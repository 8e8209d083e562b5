#include "sim/model/model_graph.hpp"

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
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (layers[i].name == layer_name) return LayerId{static_cast<std::int64_t>(i)};
  return std::nullopt;
}

void check_graph(const ModelGraph& model) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    if (!names.insert(layer.name).second) throw InternalError("two layers are called '" + layer.name + "'");
    for (LayerId input : layer.inputs) {
      if (!input.valid() || static_cast<std::size_t>(input) >= i)
        throw InternalError("layer '" + layer.name + "' comes before one of its inputs");
    }
  }
}

}  // namespace stagecraft
