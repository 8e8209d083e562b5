#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/model/model_graph.hpp"
#include "sim/plan/stage_costs.hpp"

namespace stagecraft::test {

inline bool is_tied(const Reduction& r) { return r.source == ReductionSource::TiedParameters; }
inline bool has_ties(const Plan& plan) { return std::any_of(plan.reductions.begin(), plan.reductions.end(), is_tied); }

/// Parameters that stages share, and the bytes of their gradient.
struct StageTie {
  std::vector<int> stages;
  double bytes = 0;
};

/// Gives each stage a layer for each of its ties, and sets the reductions of the plan. The sums of replicas keep their
/// bytes, if they had any.
inline void tie_stages(Plan& plan, const std::vector<StageTie>& ties) {
  ModelGraph model;
  model.precision.gradient = 1;
  for (Stage& stage : plan.stages) stage.shape.layers.clear();
  for (std::size_t t = 0; t < ties.size(); ++t)
    for (const int s : ties[t].stages) {
      plan.stages[StageId{s}].shape.layers.emplace_back(std::ssize(model.layers));
      Layer& layer = model.layers.emplace_back();
      layer.tie = "t" + std::to_string(t);
      layer.parameters = s == ties[t].stages.front() ? ties[t].bytes : 0;
    }
  IdVector<ReductionId, Reduction> reductions = derive_reductions(plan, model);
  for (const ReductionId r : reductions.ids())
    if (!is_tied(reductions[r])) reductions[r].bytes = plan.reductions.contains(r) ? plan.reductions[r].bytes : Bytes{};
  plan.reductions = std::move(reductions);
}

/// Sets the reductions of a plan that was written by hand without a model. Replicas sum the gradients of the costs.
inline void reduce_replicas(Plan& plan, const StageCosts& costs) {
  plan.reductions = derive_reductions(plan);
  for (Reduction& r : plan.reductions) r.bytes = costs.at(r.stages.front(), 0).memory.gradients;
}

/// The plan with such reductions, unless it has some already.
inline Plan reduced(Plan plan, const StageCosts& costs) {
  if (!has_ties(plan) && std::all_of(plan.reductions.begin(), plan.reductions.end(),
                                     [](const Reduction& r) { return r.bytes.value == 0; }))
    reduce_replicas(plan, costs);
  return plan;
}
inline Plan reduced(Plan plan) {
  if (!has_ties(plan)) plan.reductions = derive_reductions(plan);
  return plan;
}

}  // namespace stagecraft::test
