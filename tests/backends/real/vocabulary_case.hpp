#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "backends/real/stage_net.hpp"
#include "backends/real/stage_weights.hpp"
#include "sim/experiment/run.hpp"
#include "sim/program/workload.hpp"
#include "tests/support/files.hpp"

// Decoders whose vocabulary all ranks of a pipeline divide, and what they learn.

namespace stagecraft::vocabulary_test {

inline constexpr const char* kModel = R"(
schema: scenario/2
model:
  {builder: transformer, kind: gpt, layers: 6, hidden: 8, heads: 2, sequence: 10, vocabulary: 31, positions: rotary,
   norm: rms, gated: true, bias: false, tied: false, precision: fp64}
cluster: threads-8
plan: {planner: balanced, stages: 1, micro_batch_size: 2}
run: {schedule: 1f1b, micro_batches: 7, iterations: 3}
training: {task: random, optimizer: adam, learning_rate: 0.01, evaluate_every: 1}
)";

struct Trained {
  std::vector<double> losses, evaluations, weights;  ///< Weights by layer and operation, in the order of the model.
};

/// From what each stage has: layers, and a part of the words.
inline std::vector<double> joined(const Workload& workload, const Learnt& learnt) {
  const Workload one = as_one_stage(workload);
  const std::size_t width = real::width_of(workload);
  const real::StageNet whole = real::compile_stage(one, StageId{0}, width);
  if (workload.vocabulary.empty()) return learnt.weights.front();
  std::vector<double> weights(whole.weights, 0);
  for (const StageId s : workload.stages.ids())
    real::add_part(real::compile_rank(workload, s, width), whole, learnt.weights[s], weights);
  return weights;
}

inline Trained train(const std::vector<std::string>& sets, bool one_thread = false) {
  const CompiledExperiment c = compile(load_experiment(test::own_file("vocabulary.yaml", kModel), sets));
  const Learnt learnt = *execute(c, "cpu", one_thread).learnt;
  Trained trained{learnt.losses, {}, joined(*c.program.workload, learnt)};
  for (const Evaluation& e : learnt.evaluations) trained.evaluations.push_back(e.loss);
  return trained;
}

/// The plan of a schedule, which may be `vocab-2, order: zb-v`.
inline std::vector<std::string> divided(const std::string& schedule, int stages, const std::string& more = "") {
  return {"run.schedule={name: " + schedule + "}",
          fmt::format("plan={{planner: balanced, stages: {}, vocabulary: all, micro_batch_size: 2{}}}", stages, more)};
}

inline std::vector<std::string> with(std::vector<std::string> sets, const std::vector<std::string>& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

inline double largest_difference(const std::vector<double>& ours, const std::vector<double>& theirs) {
  REQUIRE(ours.size() == theirs.size());
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) worst = std::max(worst, std::abs(ours[i] - theirs[i]));
  return worst;
}

inline void check_equal(const Trained& ours, const Trained& theirs, double tolerance) {
  CHECK(largest_difference(ours.losses, theirs.losses) <= tolerance);
  CHECK(largest_difference(ours.evaluations, theirs.evaluations) <= tolerance);
  CHECK(largest_difference(ours.weights, theirs.weights) <= tolerance);
}

inline const std::vector<std::string> kSgd{"training.optimizer=momentum", "training.learning_rate=0.1"};

}  // namespace stagecraft::vocabulary_test
