// Mixed precision in whole runs: however a program is divided, scheduled and carried, the same bits.
#include <cmath>

#include <doctest/doctest.h>

#include "sim/core/random.hpp"
#include "tests/backends/real/run_case.hpp"
#include "tests/support/mixed_programs.hpp"

namespace stagecraft::mixed_runs_test {
namespace {

std::vector<double> flat(const IdVector<StageId, std::vector<double>>& stages) {
  std::vector<double> joined;
  for (const auto& stage : stages) joined.insert(joined.end(), stage.begin(), stage.end());
  return joined;
}

/// All layers on one device, with the same micro-batches.
Plan undivided(const ModelGraph& model, const Plan& plan) {
  Plan one;
  one.mini_batch = plan.mini_batch;
  Stage& stage = one.stages.emplace_back();
  for (const LayerId l : model.layers.ids()) stage.shape.layers.push_back(l);
  stage.place_on({DeviceId{0}});
  stage.micro_batch_size = plan.stages.front().micro_batch_size;
  return one;
}

test::RealRun run(const test::MixedProgram& p, const Plan& plan, const char* schedule) {
  const WeightsRule& rule = test::policy("flush");
  return test::really_run(test::real_program(schedule, plan, rule, 3), p.model, plan, rule, p.training);
}

}  // namespace

TEST_CASE("100 random programs in mixed precision equal training on one device, to the last bit") {
  Rng rng(5, "mixed programs");
  int differ = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const test::MixedProgram p = test::mixed_program(rng, false);
    CAPTURE(trial);
    CAPTURE(p.schedule);
    const test::RealRun pipeline = run(p, p.plan, p.schedule), alone = run(p, undivided(p.model, p.plan), "gpipe");
    CHECK(pipeline.learnt().losses == alone.learnt().losses);
    CHECK(flat(pipeline.learnt().weights) == flat(alone.learnt().weights));
    test::MixedProgram wide = p;
    wide.model.precision = {4, 4, 8, 4};
    const test::RealRun floats = run(wide, wide.plan, wide.schedule);
    differ += floats.learnt().losses != pipeline.learnt().losses;
    // Losses start at most a few roundings of 16 bits apart: the first one has seen no update.
    const double first = floats.learnt().losses.front();
    CHECK(std::abs(pipeline.learnt().losses.front() - first) <= 0.1 * std::abs(first));
  }
  CHECK(differ > 90);  // Else nothing was rounded.
}

TEST_CASE("messages, activations and the copy of the weights have 2 bytes a number, what an update changes has 4") {
  const ModelGraph mixed = test::deep_net(2, 64, 64, 64, OperationKind::Tanh, OperationKind::MeanSquare, 2);
  const ModelGraph wide = test::deep_net(2, 64, 64, 64, OperationKind::Tanh, OperationKind::MeanSquare, 4);
  const auto memory = [](const ModelGraph& model) {
    const Plan plan = test::stage_each(model, 4, 8);
    return test::really_run(test::real_program("1f1b", plan, test::policy("flush"), 2), model, plan,
                            test::policy("flush"), test::training_of(OptimizerKind::Adam, 0.01, "teacher"))
        .learnt()
        .memory[DeviceId{0}];
  };
  const MeasuredMemory in_mixed = memory(mixed), in_floats = memory(wide);
  CHECK(in_mixed.weights.value == 1.5 * in_floats.weights.value);
  CHECK(in_mixed.gradients.value == in_floats.gradients.value);
  CHECK(in_mixed.optimizer.value == in_floats.optimizer.value);
  CHECK(in_mixed.activations.value < 0.75 * in_floats.activations.value);
}

TEST_CASE("updates too small for 16 bits are not lost: they are made to the copy of 32 bits") {
  const ModelGraph model = test::deep_net(2, 8, 8, 4, OperationKind::Tanh, OperationKind::MeanSquare, 2);
  const Plan plan = test::stage_each(model, 4);
  const auto weights = [&](int iterations) {
    return flat(test::really_run(test::real_program("1f1b", plan, test::policy("flush"), iterations), model, plan,
                                 test::policy("flush"), test::training_of(OptimizerKind::Sgd, 1e-5, "teacher"))
                    .learnt()
                    .weights);
  };
  const std::vector<double> before = weights(1), after = weights(40);
  int moved = 0, nearby = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    moved += before[i] != after[i];
    nearby += std::abs(before[i] - after[i]) < 0x1p-9 * std::abs(before[i]);
  }
  CHECK(moved > 60);
  CHECK(nearby > 60);
}

TEST_CASE("weights that change under way: predicted, stashed and double buffered ones are rounded, too") {
  for (const char* policy : {"stash", "2bw", "pipeoptim", "pipemare"}) {
    CAPTURE(policy);
    const ModelGraph model = test::deep_net(3, 6, 8, 3, OperationKind::Tanh, OperationKind::MeanSquare, 2);
    const Plan plan = test::stage_each(model, 4);
    const WeightsRule& rule = test::policy(policy);
    const auto run = [&](bool one_thread) {
      return test::really_run(
                 test::real_program(std::string_view(policy) == "2bw" ? "2bw" : "pipedream", plan, rule, 5), model,
                 plan, rule, test::training_of(OptimizerKind::Momentum, 0.01, "teacher"), one_thread)
          .learnt();
    };
    const Learnt threads = run(false), one = run(true);
    CHECK(threads.losses == one.losses);
    CHECK(threads.weights == one.weights);
    CHECK(std::isfinite(one.losses.back()));
  }
}

}  // namespace stagecraft::mixed_runs_test
