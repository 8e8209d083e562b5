#include "models/operations.hpp"

#include <fmt/format.h>

#include "sim/core/text.hpp"

namespace stagecraft {

void LayerNames::add(const std::string& name, LayerId id) {
  known_.emplace(name, id);
  names_.push_back(name);
  last_ = {id};
}

std::vector<LayerId> LayerNames::inputs_of(const config::Value& layer, const std::string& path,
                                           config::Problems& problems) const {
  const config::Value* list = layer.find("inputs");
  if (!list) return last_;
  std::vector<LayerId> layers;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const config::Value& word = list->items[i];
    const auto found = known_.find(word.text);
    if (found != known_.end())
      layers.push_back(found->second);
    else
      problems.add(word.where, fmt::format("{}.inputs[{}]", path, i),
                   fmt::format("no layer in front of this one is called '{}'", word.text), suggest(word.text, names_),
                   "unknown-layer");
  }
  return layers;
}

using enum OperationKind;

Operation linear(int rows, int inputs, int outputs, std::vector<int> from) {
  return {.kind = Linear, .inputs = std::move(from), .rows = rows, .columns = outputs, .inner = inputs};
}

Operation source_of(int rows, int columns) { return {.kind = Input, .rows = rows, .columns = columns}; }

Operation loss_of(OperationKind kind, int rows, int columns) {
  return {.kind = kind, .inputs = {-1}, .rows = rows, .columns = columns};
}

Operations dense_operations(int rows, int inputs, int outputs, const std::string& activation) {
  Operations all{linear(rows, inputs, outputs)};
  if (activation != "none") {
    const OperationKind kind = activation == "relu" ? Relu : activation == "tanh" ? Tanh : Gelu;
    all.push_back({.kind = kind, .inputs = {0}, .rows = rows, .columns = outputs});
  }
  return all;
}

Operations norm_operations(int rows, int width) {
  return {{.kind = LayerNorm, .inputs = {-1}, .rows = rows, .columns = width}};
}

Operations attention_operations(int rows, int width, int heads, bool causal) {
  return {linear(rows, width, 3 * width),
          {.kind = Attention, .inputs = {0}, .rows = rows, .columns = width, .heads = heads, .causal = causal},
          linear(rows, width, width, {1})};
}

Operations transformer_operations(int rows, int width, int feed_forward, int heads, bool causal) {
  return {{.kind = LayerNorm, .inputs = {-1}, .rows = rows, .columns = width},
          linear(rows, width, 3 * width, {0}),
          {.kind = Attention, .inputs = {1}, .rows = rows, .columns = width, .heads = heads, .causal = causal},
          linear(rows, width, width, {2}),
          {.kind = Add, .inputs = {-1, 3}, .rows = rows, .columns = width},
          {.kind = LayerNorm, .inputs = {4}, .rows = rows, .columns = width},
          linear(rows, width, feed_forward, {5}),
          {.kind = Gelu, .inputs = {6}, .rows = rows, .columns = feed_forward},
          linear(rows, feed_forward, width, {7}),
          {.kind = Add, .inputs = {4, 8}, .rows = rows, .columns = width}};
}

}  // namespace stagecraft
