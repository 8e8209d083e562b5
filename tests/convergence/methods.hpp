#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/backends/real/run_case.hpp"
#include "tests/support/nets.hpp"

namespace stagecraft::test {

/// Samples per update.
inline constexpr int kBatch = 32;

/// A weights policy as in its paper, or as its code was released.
struct Method {
  std::string policy;
  bool released = false;
  std::string stated = {};  ///< What the prototype showed: median [lowest-highest].

  std::string name() const { return policy + (released ? " as released" : ""); }
  WeightsRule rule() const {
    const WeightsDef& def = get_from(weights::catalog(), "weights policy", policy);
    return released ? *def.as_released : def.paper;
  }
};

/// A pipeline with one tanh layer of width 32 per stage, and the order of work that suits a policy.
struct Case {
  ModelGraph model;
  Plan plan;
  const char* schedule;

  // 2BW keeps only two versions, so it needs depth - 1 micro-batches per update: the same samples in smaller ones.
  Case(const std::string& policy, const std::string& task, int depth = 8)
      : model(task == "glyph" ? deep_net(depth, 64, 32, 10, OperationKind::Tanh, OperationKind::CrossEntropy)
                              : deep_net(depth, 16, 32, 4)),
        plan(policy == "2bw" ? stage_each(model, depth, kBatch / depth) : stage_each(model, 1, kBatch)),
        schedule(policy == "flush" ? "1f1b"
                 : policy == "2bw" ? "2bw"
                                   : "pipedream") {}
};

inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

}  // namespace stagecraft::test
