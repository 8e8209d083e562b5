// A vocabulary that all ranks of a pipeline divide really runs: losses and weights against training without a pipeline.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/core.h>

#include "backends/real/stage_net.hpp"
#include "backends/real/stage_weights.hpp"
#include "sim/experiment/run.hpp"
#include "sim/program/workload.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::vocabulary_test {
namespace {

constexpr const char* kModel = R"(
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
std::vector<double> joined(const Workload& workload, const Learnt& learnt) {
  const Workload one = as_one_stage(workload);
  const real::StageNet whole = real::compile_stage(one, StageId{0}, 8);
  if (workload.vocabulary.empty()) return learnt.weights.front();
  std::vector<double> weights(whole.weights, 0);
  for (const StageId s : workload.stages.ids())
    real::add_part(real::compile_part(workload, s, {}, 8), whole, learnt.weights[s], weights);
  return weights;
}

Trained train(const std::vector<std::string>& sets, bool one_thread = false) {
  const CompiledExperiment c = compile(load_experiment(test::own_file("vocabulary.yaml", kModel), sets));
  const Learnt learnt = *execute(c, "cpu", one_thread).learnt;
  Trained trained{learnt.losses, {}, joined(*c.program.workload, learnt)};
  for (const Evaluation& e : learnt.evaluations) trained.evaluations.push_back(e.loss);
  return trained;
}

/// The plan of a schedule, which may be `vocab-2, order: zb-v`.
std::vector<std::string> divided(const std::string& schedule, int stages, const std::string& more = "") {
  return {"run.schedule={name: " + schedule + "}",
          fmt::format("plan={{planner: balanced, stages: {}, vocabulary: all, micro_batch_size: 2{}}}", stages, more)};
}

std::vector<std::string> with(std::vector<std::string> sets, const std::vector<std::string>& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

double largest_difference(const std::vector<double>& ours, const std::vector<double>& theirs) {
  REQUIRE(ours.size() == theirs.size());
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) worst = std::max(worst, std::abs(ours[i] - theirs[i]));
  return worst;
}

void check_equal(const Trained& ours, const Trained& theirs, double tolerance) {
  CHECK(largest_difference(ours.losses, theirs.losses) <= tolerance);
  CHECK(largest_difference(ours.evaluations, theirs.evaluations) <= tolerance);
  CHECK(largest_difference(ours.weights, theirs.weights) <= tolerance);
}

const std::vector<std::string> kSgd{"training.optimizer=momentum", "training.learning_rate=0.1"};

}  // namespace

TEST_CASE("all orders of a vocabulary on all ranks learn what one device learns, also where the words do not divide") {
  const Trained expected = train(kSgd);
  for (const char* schedule : {"vocab-1", "vocab-2", "interlaced"})
    for (const int stages : {1, 2, 3, 6}) {
      CAPTURE(schedule);
      CAPTURE(stages);
      check_equal(train(with(divided(schedule, stages), kSgd)), expected, 1e-12);
    }
  for (const char* schedule : {"vocab-1, order: zb-v", "vocab-2, order: v-half", "vocab-2, order: 1f1b-v"}) {
    CAPTURE(schedule);
    check_equal(train(with(divided(schedule, 6), kSgd)), expected, 1e-12);
  }
}

TEST_CASE("one rank with all words computes with two barriers what a loss at the end computes, to the last bit") {
  check_equal(train(divided("vocab-1", 1)), train({}), 0);
}

TEST_CASE("threads and one thread give the same bits") {
  for (const char* schedule : {"vocab-1", "vocab-2"}) {
    CAPTURE(schedule);
    check_equal(train(divided(schedule, 3)), train(divided(schedule, 3), true), 0);
  }
}

TEST_CASE("gradients of tied weights are added in one order, whenever the gradients of embeddings come") {
  for (const char* schedule : {"vocab-1", "vocab-2"})
    for (const char* sum : {"order", "slots"}) {
      CAPTURE(schedule);
      CAPTURE(sum);
      const std::vector<std::string> sets = with(divided(schedule, 3), {"model.tied=true", "run.micro_batches=12",
                                                                        fmt::format("training.gradient_sum={}", sum)});
      const Trained expected = train(sets, true);
      for (int run = 0; run < 6; ++run) check_equal(train(sets), expected, 0);
    }
}

TEST_CASE("positions, tied weights, replicas, divided states, recomputation and packs") {
  const std::vector<std::vector<std::string>> models{
      {"model.positions=learned", "model.norm=layer", "model.gated=false", "model.bias=true"},
      {"model.tied=true"},
      {"training.gradient_sum=slots"}};
  for (const std::vector<std::string>& model : models)
    for (const char* schedule : {"vocab-1", "vocab-2"}) {
      CAPTURE(model.front());
      CAPTURE(schedule);
      const std::vector<std::string> sets = with(kSgd, model);
      check_equal(train(with(divided(schedule, 3), sets)), train(sets), 1e-12);
    }
  const std::vector<std::string> twice = with(kSgd, {"plan.micro_batch_size=4"});
  for (const char* more : {", replicas: 2", ", replicas: 2, shard: optimizer"}) {
    CAPTURE(more);
    check_equal(train(with(divided("vocab-2", 3, more), kSgd)), train(twice), 1e-12);
  }
  check_equal(train(with(divided("vocab-1", 3, ", recompute: full"), kSgd)), train(kSgd), 1e-12);
  const std::vector<std::string> packs{
      "run={schedule: 1f1b, iterations: 2, loads: [[7, 3], [10], [2, 2, 1], [4], [9, 1]]}", "plan.micro_batch_size=1",
      "training.evaluate_every=0"};
  for (const char* schedule : {"vocab-1", "vocab-2"}) {
    CAPTURE(schedule);
    std::vector<std::string> sets = with(kSgd, packs);
    const Trained expected = train(sets);
    sets = with(sets, {fmt::format("run.schedule={}", schedule),
                       "plan={planner: balanced, stages: 2, vocabulary: all, micro_batch_size: 1}"});
    check_equal(train(sets), expected, 1e-12);
  }
}

}  // namespace stagecraft::vocabulary_test
