#include "sim/plan/recomputation.hpp"

#include <algorithm>

namespace stagecraft {

LayerMemory layer_memory(const Stage& stage, const ModelGraph& model, LayerId id, double samples) {
  const Layer& layer = model.layers[id];
  const Bytes all = layer.stash * samples;
  if (stage.recompute_cores) {
    const Bytes core = layer.core.stash * samples;
    return {all - core, {}, core};
  }
  if (!stage.recompute) return {all, {}, {}};
  Bytes inputs;
  for (const LayerId from : layer.inputs) inputs += model.layers[from].output * samples;
  const Bytes kept = std::min(inputs, all);
  return {kept, all - kept, {}};
}

double share_again(const Stage& stage, const LayerCost& cost) {
  return stage.recompute ? 1 : stage.recompute_cores ? cost.core : 0;
}

}  // namespace stagecraft
