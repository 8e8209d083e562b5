// The part of StageCompiler for a vocabulary that all ranks of a pipeline divide: what a stage gets from the embedding
// and gives to the scores, and the part of the words that its rank has.

#include <algorithm>

#include <fmt/core.h>

#include "backends/real/stage_compiler.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {

void StageCompiler::read_embedding() {
  const LayerId embedding = workload_.vocabulary[0];
  for (const LayerId id : own_.layers) {
    const std::vector<LayerId>& inputs = layer_of(id.value).inputs;
    if (std::find(inputs.begin(), inputs.end(), embedding) == inputs.end()) continue;
    // Each device of a tensor group gets the sum of all ranks over its part of the words, for all rows.
    const Operation& op = layer_of(embedding.value).operations.back();
    layer_ = embedding.value;
    net_.embedded = add_arriving(op);
    net_.values.back().rows = rows_in(Layout::Whole, op.rows);
    output_of_[embedding] = leave(op, net_.embedded);
    return;
  }
}

void StageCompiler::leave_for_scores() {
  const LayerId scored = layer_of(workload_.vocabulary[1].value).inputs.front();
  if (std::binary_search(own_.layers.begin(), own_.layers.end(), scored)) net_.scored = output_of_.at(scored);
}

void StageCompiler::add_vocabulary() {
  const LayerId embedding = workload_.vocabulary[0], scores = workload_.vocabulary[1];
  const LayerId tokens = layer_of(embedding.value).inputs.front(), scored = layer_of(scores.value).inputs.front();
  add_layer(tokens);
  add_words(embedding, output_of_.at(tokens));
  layer_ = scores.value;
  const WorkloadLayer& layer = layer_of(scores.value);
  const int arriving = add_arriving(layer_of(scored.value).operations.back());
  const int input = enter(layer.operations.front(), layer, arriving, Layout::Whole);
  add_words(workload_.vocabulary[2], add_words(scores, input));
  net_.counts_losses = own_.vocabulary_rank == 0 && place_.tensor == 0;
}

int StageCompiler::add_words(LayerId id, int input) {
  const WorkloadLayer& layer = layer_of(id.value);
  if (layer.operations.size() != 1)
    throw InputError(fmt::format("layer '{}' of the model '{}' does more than one operation with a vocabulary that all "
                                 "ranks divide",
                                 layer.name, workload_.name),
                     "--backend ideal, fluid or simgrid; or plan.vocabulary: ends");
  const Operation& op = layer.operations.front();
  Degrees parts = degrees_;
  GroupPlace place = place_;
  parts.tensor *= word_parts_;
  place.tensor += own_.vocabulary_rank * degrees_.tensor;
  DividedOperation part = divide(op, {op.columns}, parts, place, width_);
  layer_ = id.value;
  Node node;
  node.operation = keep(std::move(part.operation));
  node.inputs = {input};
  node.layer = id.value;
  node.slices = std::move(part.slices);
  node.first_word = part.first_word;
  node.words = part.words > 0 || !op.is_loss() ? part.words : op.columns;
  if (is_divided()) {
    node.all_rows = op.rows, node.rows = part.rows;
    node.first_row = place_.context * part.rows;
  }
  place_weights(node, layer);
  read(node);
  net_.nodes.push_back(std::move(node));
  return net_.nodes.back().output;
}

}  // namespace stagecraft::real
