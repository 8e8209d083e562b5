#pragma once

#include "tests/support/nets.hpp"

namespace stagecraft::test {

/// Two stages of three layers each, the first on two devices and the second on three.
inline Plan replicated_halves(const ModelGraph& model, int micro_batches) {
  Plan plan = stage_each(model, micro_batches, 6);
  for (int s = 1; s < 6; ++s) {
    auto& layers = plan.stages[StageId{s}].shape.layers;
    auto& into = plan.stages[StageId{s < 3 ? 0 : 3}].shape.layers;
    if (s != 3) into.insert(into.end(), layers.begin(), layers.end());
  }
  plan.stages[StageId{1}] = plan.stages[StageId{3}];
  plan.stages.resize(2);
  plan.stages[StageId{0}].place_on({DeviceId{0}, DeviceId{2}});
  plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{3}, DeviceId{4}});
  plan.edges.clear();
  connect(plan, model);
  return plan;
}

}  // namespace stagecraft::test
