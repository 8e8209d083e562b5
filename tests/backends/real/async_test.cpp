// Asynchronous 1F1B on threads against the recurrence that it is: bit for bit, for every weights policy, optimizer and
// accumulation, with drains and refills on warm optimizer state.

#include <doctest/doctest.h>

#include "tests/backends/real/oracle.hpp"
#include "tests/backends/real/run_case.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::async_test {
namespace {

struct Policy {
  std::string formulas;  ///< Name in PolicyFormulas.
  std::string name;      ///< Name in the catalog.
  bool released = false;
};

const Policy kPolicies[] = {{"naive", "naive"},
                            {"stash", "stash"},
                            {"vertical-sync", "vertical-sync"},
                            {"spectrain", "spectrain"},
                            {"spectrain-v2", "spectrain-v2"},
                            {"xpipe", "xpipe"},
                            {"pipeoptim", "pipeoptim"},
                            {"pipeoptim released", "pipeoptim", true},
                            {"geometric", "geometric"},
                            {"pipemare", "pipemare"},
                            {"spike-compensation", "spike-compensation"},
                            {"layerpipe2", "layerpipe2"},
                            {"2bw", "2bw"}};

WeightsRule rule_of(const Policy& p) {
  const WeightsDef& def = get_from(weights::catalog(), "weights policy", p.name);
  return p.released ? *def.as_released : def.paper;
}

config::Value drain(std::string_view schedule, int every) {
  return test::checked("drain_every: " + std::to_string(every),
                       *get_from(schedules::catalog(), "schedule", schedule).fields);
}

void compare(const Policy& policy, OptimizerKind kind, int depth, int each, int drain_every, bool one_thread) {
  CAPTURE(policy.formulas);
  CAPTURE(to_text(kind));
  CAPTURE(depth);
  CAPTURE(each);
  CAPTURE(drain_every);
  CAPTURE(one_thread);
  const int iterations = 30 / each + 6;
  const ModelGraph model = test::deep_net(depth, 6, 8, 3);
  const Plan plan = test::stage_each(model, each);
  Training training = test::training_of(kind, kind == OptimizerKind::Momentum ? 0.01 : 0.002, "teacher");
  training.optimizer.weight_decay = kind == OptimizerKind::AdamW ? 0.01 : 0;
  const WeightsRule rule = rule_of(policy);
  const config::Value options = drain("pipedream", drain_every);
  const test::RealRun run = test::really_run(test::real_program("pipedream", plan, rule, iterations, &options), model,
                                             plan, rule, training, one_thread);
  const test::Expected expected =
      test::SequentialRecurrence(model, plan, training, {policy.formulas, depth, each}).run(iterations, drain_every);
  CHECK(run.learnt().losses == expected.losses);
  CHECK(run.learnt().weights == expected.weights);
  for (const InstructionId i : run.program.instructions.ids()) {
    const Instruction& instruction = run.program.instructions[i];
    if (instruction.is_compute()) REQUIRE(run.learnt().versions[i] == run.program.version_of(instruction));
  }
}

}  // namespace

TEST_CASE("every policy equals its recurrence to the last bit, on threads") {
  for (const Policy& policy : kPolicies)
    for (const OptimizerKind kind : {OptimizerKind::Momentum, OptimizerKind::Adam, OptimizerKind::AdamW})
      for (const int each : {1, 4}) {
        if (policy.name == "2bw" && each < 4 - 1) continue;  // Two versions are not enough.
        compare(policy, kind, 4, each, 0, false);
        compare(policy, kind, 4, each, 5, false);
      }
}

TEST_CASE("the same on one thread, deeper, and with the other optimizers") {
  for (const Policy& policy : kPolicies)
    for (const OptimizerKind kind : {OptimizerKind::Sgd, OptimizerKind::RmsProp, OptimizerKind::Adam}) {
      if (policy.name == "2bw") continue;
      if (policy.formulas == "geometric" && kind == OptimizerKind::Sgd) continue;  // It has no momentum to sum.
      compare(policy, kind, 7, 2, 4, true);
    }
}

TEST_CASE("policies differ: the comparison can fail") {
  const ModelGraph model = test::deep_net(4, 6, 8, 3);
  const Plan plan = test::stage_each(model, 1);
  const Training training = test::training_of(OptimizerKind::Momentum, 0.01, "teacher");
  std::vector<IdVector<StageId, std::vector<double>>> seen;
  for (const Policy& policy : kPolicies) {
    if (policy.name == "2bw") continue;
    const WeightsRule rule = rule_of(policy);
    const test::RealRun run =
        test::really_run(test::real_program("pipedream", plan, rule, 20), model, plan, rule, training, true);
    for (const auto& other : seen) CHECK(run.learnt().weights != other);
    seen.push_back(run.learnt().weights);
  }
}

}  // namespace stagecraft::async_test
