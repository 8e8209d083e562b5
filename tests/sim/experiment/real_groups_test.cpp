// Groups of devices that really run, from a scenario to weights and memory.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/experiment/profiling.hpp"
#include "sim/experiment/run.hpp"

namespace stagecraft::real_groups_test {

namespace {

constexpr const char* kGroups = "examples/cpu-groups";
constexpr const char* kExperts = "examples/cpu-experts";

Experiment scenario(const std::vector<std::string>& sets, const std::string& file = kGroups) {
  return load_experiment(file, sets);
}

Learnt learn(const std::vector<std::string>& sets, const std::string& file = kGroups) {
  return *execute(compile(scenario(sets, file)), "cpu").learnt;
}

double largest_difference(const std::vector<double>& ours, const std::vector<double>& theirs) {
  REQUIRE(ours.size() == theirs.size());
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) worst = std::max(worst, std::abs(ours[i] - theirs[i]));
  return worst;
}

/// Operations in the order of the model, whatever the stages.
std::vector<double> all_weights(const Learnt& learnt) {
  std::vector<double> weights;
  for (const auto& stage : learnt.weights) weights.insert(weights.end(), stage.begin(), stage.end());
  return weights;
}

std::string refusal(const std::vector<std::string>& sets, const std::string& file = kGroups) {
  try {
    execute(compile(load_experiment(file, sets)), "cpu");
  } catch (const InputError& e) {
    return e.problems().front().message;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a scenario with groups and divided states learns what it does without") {
  const std::vector<std::string> whole = {"plan={planner: balanced, stages: 1, micro_batch_size: 2}"};
  const Learnt expected = learn(whole);
  for (const std::string plan :
       {"stages: 2, replicas: 2, group: {tensor: 2, sequence: true}, shard: optimizer",
        "stages: 1, replicas: 2, group: {tensor: 4}, shard: {state: weights, reshard: true}",
        "stages: 2, replicas: 1, micro_batch_size: 2, group: {tensor: 2, context: 2, context_type: p2p}",
        "stages: 2, replicas: 2, group: {context: 2, context_type: all_gather}, shard: gradients",
        "stages: 1, replicas: 2, group: {tensor: 2, context: 2, context_type: a2a}"}) {
    CAPTURE(plan);
    const Learnt learnt = learn({"plan={planner: balanced, " + plan + "}"});
    CHECK(largest_difference(learnt.losses, expected.losses) < 1e-12);
    CHECK(largest_difference(all_weights(learnt), all_weights(expected)) < 1e-12);
  }
}

TEST_CASE("a scenario with experts on several devices learns what it does on one") {
  const Learnt expected = learn({"plan={planner: balanced, stages: 1, micro_batch_size: 4}"}, kExperts);
  for (const std::string plan :
       {"stages: 2, replicas: 2, group: {tensor: 2, sequence: true, expert: 4}",
        "stages: 2, replicas: 4, micro_batch_size: 1, group: {expert: 2}, shard: optimizer",
        "stages: 1, replicas: 2, group: {tensor: 4, sequence: true, expert: 2, expert_tensor: 2}, shard: gradients",
        "stages: 1, replicas: 2, group: {tensor: 2, sequence: true, context: 2, context_type: p2p, expert: 8}",
        "stages: 2, replicas: 2, group: {context: 2, context_type: all_gather, expert: 4}, shard: weights"}) {
    CAPTURE(plan);
    const bool small = plan.find("micro_batch_size") != std::string::npos;
    const Learnt learnt =
        learn({"plan={planner: balanced, " + plan + (small ? "}" : ", micro_batch_size: 2}")}, kExperts);
    CHECK(largest_difference(learnt.losses, expected.losses) < 1e-12);
    CHECK(largest_difference(all_weights(learnt), all_weights(expected)) < 1e-12);
  }
}

TEST_CASE("the timeline of a real run has the instructions of the program, and memory of all devices") {
  const CompiledExperiment c = compile(scenario({}));
  const Timeline timeline = execute(c, "cpu");
  CHECK(timeline.start.size() == c.program.size());
  CHECK(timeline.learnt->versions.size() == c.program.size());
  for (const InstructionId i : c.program.instructions.ids())
    for (const InstructionId before : c.program.waits_for(i)) CHECK(timeline.end[before] <= timeline.start[i] + 1e-12);
  for (const MeasuredMemory& m : timeline.learnt->memory) CHECK(m.total.value > 0);
}

TEST_CASE("weights, gradients and states of the optimizer take what the simulation charges") {
  for (const std::string shard : {"none", "optimizer", "gradients"})
    for (const std::string group : {"{tensor: 1}", "{tensor: 2, sequence: true}", "{tensor: 4}"}) {
      CAPTURE(shard);
      CAPTURE(group);
      const bool wide = group == "{tensor: 4}";
      const CompiledExperiment c =
          compile(scenario({"plan.shard=" + shard, "plan.group=" + group, wide ? "plan.stages=1" : "plan.stages=2"}));
      const Learnt learnt = *execute(c, "cpu").learnt;
      for (const Stage& stage : c.plan.stages)
        for (int d = 0; d < std::ssize(stage.dense.devices); ++d) {
          const DeviceId device = stage.dense.devices[d];
          const ResidentMemory& charged = c.program.memory[stage.devices()[d / stage.shape.degrees.group()]];
          const MeasuredMemory& measured = learnt.memory[device];
          CHECK(measured.weights.value == doctest::Approx(charged.weights.value).epsilon(0.03));
          CHECK(measured.optimizer.value == doctest::Approx(charged.optimizer.value).epsilon(0.03));
          // What is summed with other devices is made apart first, one operation at a time.
          if (shard != "gradients")
            CHECK(measured.gradients.value == doctest::Approx(charged.gradients.value).epsilon(0.05));
        }
    }
}

TEST_CASE("a validation simulates groups by their shapes") {
  for (const char* file : {kGroups, kExperts}) {
    const Validated v = validate_experiment(scenario({"run.iterations=5"}, file), "cpu", "ideal", 0.1);
    CHECK(v.layers_measured == 0);
    CHECK(!v.validation.memory.empty());
    CHECK(v.measured.report.makespan.value > 0);
  }
}

TEST_CASE("what a real run of groups cannot do is refused with a reason") {
  CHECK(refusal({"plan.replicas=1", "plan.group={tensor: 8, sequence: true}", "plan.stages=1"}) ==
        "the backend 'cpu' copies no key-value heads, and tensor 8 does not divide the 4 of layer 'l0'");
  CHECK(refusal({"model.experts.capacity=1.25"}, kExperts) ==
        "layer 'l0' of the model 'transformer' sends 80 rows in place of 2 x 32 to its experts: real backends neither "
        "drop nor "
        "pad rows");
}

}  // namespace stagecraft::real_groups_test
