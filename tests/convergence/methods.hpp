#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "backends/real/session.hpp"
#include "tests/backends/real/run_case.hpp"
#include "tests/support/nets.hpp"

namespace stagecraft::test {

/// Samples of an update.
inline constexpr int kBatch = 32;

/// A weights policy as its paper has it, or as its code was released.
struct Method {
  std::string policy;
  bool released = false;
  std::string stated = {};  ///< What the prototype showed: median [lowest-highest].

  std::string name() const { return policy + (released ? " as released" : ""); }
  WeightsRule rule() const {
    const WeightsDef& def = get_from(weights::all(), "weights policy", policy);
    return released ? *def.as_released : def.paper;
  }
};

/// One tanh layer of width 32 a stage, and the order of work that suits a policy.
struct Case {
  ModelGraph model;
  Plan plan;
  const char* schedule;

  // 2BW keeps two versions only, so that it needs depth - 1 micro-batches an update: as many samples in smaller ones.
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

/// The weights of the first stage behind every update: none, one, two, ...
inline std::vector<std::vector<double>> first_stage(const Method& method, Training training, int updates, int depth) {
  training.evaluate_every = 1;
  const Case c(method.policy, training.task, depth);
  const WeightsRule rule = method.rule();
  const Program program = real_program(c.schedule, c.plan, rule, updates);
  const Work work{c.model, c.plan, rule, training};
  real::Session session(program, work, cpu::make_kernels, [](DeviceId) { return true; });
  real::WalkOptions options;
  options.one_thread = true;
  real::walk(program, session, nullptr, options);
  const auto& snapshots = session.stage_on(StageId{0}, DeviceId{0}).snapshots();
  std::vector<std::vector<double>> versions;
  for (int u = 0; u <= updates; ++u) versions.push_back(snapshots.at(u));
  return versions;
}

/// PipeOptim's ||W_hat - W(f + s)|| / ||W(f) - W(f + s)|| on the first stage, s = depth - 1, mean over the updates;
/// above 1 it is better not to predict. With W(f) - W(f - 1) = -d(f) the paper's prediction repeats the last step:
/// W_hat = W(f) - s d(f). The released code goes s + 1 steps of the momentum after one more equal gradient:
/// W_hat = W(f) - (s + 1) (d(f) + mu (d(f) - d(f - 1))).
inline double prediction_error(const Training& training, int updates, int depth = 8, bool released = false) {
  const auto w = first_stage({"pipeoptim", released}, training, updates, depth);
  const auto ahead = static_cast<std::size_t>(depth - 1);
  const double mu = released ? training.optimizer.momentum : 0, steps = depth - 1 + released;
  double sum = 0;
  for (std::size_t f = 2; f + ahead < w.size(); ++f) {
    std::vector<double> predicted = w[f];
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      const double step = w[f - 1][i] - w[f][i], before = w[f - 2][i] - w[f - 1][i];
      predicted[i] -= steps * (step + mu * (step - before));
    }
    sum += distance(predicted, w[f + ahead]) / distance(w[f], w[f + ahead]);
  }
  return sum / static_cast<double>(w.size() - ahead - 2);
}

}  // namespace stagecraft::test
