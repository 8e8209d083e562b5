// Which inputs and losses of a model a task has to give numbers for.

#include "sim/training/task.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

/// Place of an operation: layer, then operation.
struct OperationId {
  LayerId layer;
  std::size_t operation = 0;
};

/// Where input `from` of an operation of layer `user` is computed.
OperationId source_of(const ModelGraph& model, LayerId user, int from) {
  if (from >= 0) return {user, static_cast<std::size_t>(from)};
  const LayerId layer = model.layers[user].inputs[-1 - from];
  return {layer, model.layers[layer].operations.size() - 1};
}

}  // namespace

TaskShape task_shape(const ModelGraph& model, std::int64_t mini_batch) {
  TaskShape shape;
  shape.mini_batch = mini_batch;
  std::vector<OperationId> places;
  const auto take_words = [&](OperationId source, int words) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i].layer != source.layer || places[i].operation != source.operation) continue;
      int& inner = shape.inputs[i].inner;
      inner = inner == 0 ? words : std::min(inner, words);
    }
  };
  for (const LayerId l : model.layers.ids()) {
    const auto& operations = model.layers[l].operations;
    for (std::size_t o = 0; o < operations.size(); ++o) {
      const Operation& op = operations[o];
      if (op.is_loss()) shape.losses.push_back(op);
      if (op.kind == OperationKind::Input) {
        shape.inputs.push_back(op);
        shape.inputs.back().inner = 0;
        places.push_back({l, o});
      }
      if (op.kind != OperationKind::Embedding) continue;
      shape.words = shape.words == 0 ? op.inner : std::min(shape.words, op.inner);
      for (const int from : op.inputs) take_words(source_of(model, l, from), op.inner);
    }
  }
  return shape;
}

}  // namespace stagecraft
