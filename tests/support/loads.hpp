#pragma once

#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/plan/stage_costs.hpp"

namespace stagecraft::test {

/// Gives a plan micro-batches with these loads of one sample each, [micro-batch * replicas + replica], and costs that
/// are proportional to them. A load is both the tokens and the pairs of a sample.
inline void set_proportional_loads(Plan& plan, StageCosts& costs, const std::vector<double>& loads, int replicas = 1) {
  plan.loads = {.classes = {}, .class_of = {}, .replicas = replicas};
  const StageCosts one = costs;
  for (const double x : loads) {
    plan.loads.class_of.push_back(static_cast<int>(plan.loads.classes.size()));
    plan.loads.classes.push_back({.samples = 1, .rows = x, .pairs = x});
    StageCosts of_load = one;
    for (StageCost& c : of_load.values()) {
      for (const auto time : {&StageCost::forward, &StageCost::backward, &StageCost::input_gradient,
                              &StageCost::weight_gradient, &StageCost::recompute})
        c.*time = x * (c.*time);
      c.memory.stash = x * c.memory.stash;
      c.memory.recompute_stash = x * c.memory.recompute_stash;
    }
    costs.add_class(of_load);
  }
}

}  // namespace stagecraft::test
