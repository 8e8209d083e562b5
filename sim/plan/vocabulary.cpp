// Which layers have the vocabulary, and how a plan divides them among its ranks.

#include "sim/plan/vocabulary.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace stagecraft {
namespace {

bool is_embedding(const Operation& op) { return op.kind == OperationKind::Embedding; }
bool is_loss(const Operation& op) { return op.kind == OperationKind::CrossEntropy; }
bool is_scores(const Operation& op) { return op.kind == OperationKind::Linear && op.division == Division::Vocabulary; }

template <class Matches>
std::vector<LayerId> layers_with(const ModelGraph& model, const Matches& matches) {
  std::vector<LayerId> layers;
  for (const LayerId id : model.layers.ids()) {
    const std::vector<Operation>& operations = model.layers[id].operations;
    if (std::any_of(operations.begin(), operations.end(), matches)) layers.push_back(id);
  }
  return layers;
}

}  // namespace

std::vector<LayerId> vocabulary_layers(const ModelGraph& model) {
  std::vector<LayerId> layers = layers_with(model, is_embedding);
  const std::vector<LayerId> scores = layers_with(model, is_scores), losses = layers_with(model, is_loss);
  if (layers.size() != 1 || scores.size() != 1 || losses.size() != 1) return {};
  layers.push_back(scores.front());
  layers.push_back(losses.front());
  return layers;
}

std::vector<StageId> vocabulary_stages(const Plan& plan) {
  std::vector<StageId> stages;
  std::set<DeviceId> seen;
  for (const StageId s : plan.stages.ids())
    if (seen.insert(plan.stage(s).leaders.front()).second) stages.push_back(s);
  std::reverse(stages.begin(), stages.end());
  const DeviceId last = plan.stages.back().leaders.front();
  const auto root =
      std::find_if(stages.begin(), stages.end(), [&](StageId s) { return plan.stage(s).leaders.front() == last; });
  std::rotate(stages.begin(), root, std::next(root));
  return stages;
}

void divide_vocabulary(Plan& plan, const ModelGraph& model) {
  const std::vector<LayerId> vocabulary = vocabulary_layers(model);
  for (Stage& stage : plan.stages)
    std::erase_if(stage.shape.layers,
                  [&](LayerId id) { return std::find(vocabulary.begin(), vocabulary.end(), id) != vocabulary.end(); });
  const std::vector<StageId> with_part = vocabulary_stages(plan);
  for (const StageId s : with_part) {
    plan.stages[s].shape.vocabulary = vocabulary;
    plan.stages[s].shape.vocabulary_ranks = static_cast<int>(with_part.size());
  }
  const Layer &scores = model.layers[vocabulary[1]], &loss = model.layers[vocabulary[2]];
  const Operation& loss_operation = *std::find_if(loss.operations.begin(), loss.operations.end(), is_loss);
  constexpr double kStatistics = 3 * 4;  // Bytes of a token.
  const double devices = plan.stages.back().shape.degrees.group();
  plan.vocabulary = {.input = model.layers[scores.inputs.front()].output / devices,
                     .statistics = Bytes{kStatistics * loss_operation.rows / devices},
                     .embedding = model.layers[vocabulary[0]].output / devices};
}

}  // namespace stagecraft
