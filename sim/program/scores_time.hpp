#pragma once

#include "sim/cost/stage_cost.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// What an op for the part of the vocabulary that a rank has takes: with one barrier its scores make the gradient of
/// their input too, else that belongs to the gradients of the scores. The embedding runs with them.
inline TimeByClass time_of_scores(const StageCost& cost, VocabularyPasses passes, OpKind kind) {
  if (!cost.vocabulary) return {};
  const EachPass<TimeByClass>& part = cost.vocabulary->passes;
  const bool early = passes == VocabularyPasses::OneBarrier;
  if (kind == OpKind::Scores) return early ? part.forward + part.input_gradient : part.forward;
  return early ? part.weight_gradient : part.input_gradient + part.weight_gradient;
}

}  // namespace stagecraft
