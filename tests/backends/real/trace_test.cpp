// Which version of the weights each op used, as the executor recorded it: what the Program says, what the closed forms
// say, and never a matter of time.

#include <doctest/doctest.h>

#include <map>

#include "backends/backend.hpp"
#include "tests/backends/real/oracle.hpp"
#include "tests/backends/real/run_case.hpp"

namespace stagecraft::trace_test {
namespace {

constexpr int kDepth = 4;

// The third stage has eighty times the work of the first.
ModelGraph uneven_net() { return test::dense_net({6, 8, 64, 64, 3}); }

/// Versions of everything that computes, by what it is: "2F5", "2PF5", "0U3".
using Trace = std::map<std::string, int>;

Trace trace_of(const Program& program, const IdVector<InstructionId, std::int32_t>& versions) {
  Trace trace;
  for (const InstructionId i : program.instructions.ids())
    if (program.instructions[i].is_compute()) trace[to_text(program, i)] = versions[i];
  return trace;
}

Trace planned(const Program& program) {
  IdVector<InstructionId, std::int32_t> versions;
  for (const Instruction& i : program.instructions) versions.push_back(program.version_of(i));
  return trace_of(program, versions);
}

struct Asynchronous {
  ModelGraph model = uneven_net();
  Plan plan;
  WeightsRule rule;
  int iterations;

  Asynchronous(const char* policy, int each)
      : plan(test::stage_each(model, each)), rule(test::policy(policy)), iterations(3 * kDepth / each + 6) {}

  Program lowered(const StageCosts& costs) const {
    const Schedule order = build_schedule(get_from(schedules::catalog(), "schedule", "pipedream"),
                                          {.plan = plan, .costs = costs, .iterations = iterations});
    LoweringOptions options;
    options.iterations = iterations;
    Program program = lower(order, plan, costs, rule, options);
    check_program(program);
    return program;
  }
  StageCosts costs(const std::vector<double>& forward) const {
    StageCosts costs;
    for (const double seconds : forward) costs.add({test::times(seconds, 2 * seconds)});
    return costs;
  }
  test::RealRun run(Program program) const {
    return test::really_run(std::move(program), model, plan, rule,
                            test::training_of(OptimizerKind::Momentum, 0.001, "teacher"));
  }
};

/// v_F and v_B of micro-batch q at stage k; bF = max(0, q - (D - 1 - k)) backwards come before F, q before B.
int expected(const test::PolicyFormulas& policy, const Instruction& i) {
  const int k = i.stage.value, q = i.number;
  switch (i.kind) {
    case InstructionKind::Forward:
      return policy.forward(k, q);
    case InstructionKind::Backward:
      return policy.same_as_forward() ? policy.forward(k, q) : policy.newest_backward(q);
    case InstructionKind::Predict:
      return policy.newest_forward(k, q);
    default:
      return q + 1;  // An update makes the next version.
  }
}

}  // namespace

TEST_CASE("the executor used the versions of the program, which equal the closed forms") {
  for (const char* name : {"naive", "stash", "2bw", "vertical-sync", "pipeoptim"})
    for (const int each : {1, 4}) {
      if (name == std::string_view("2bw") && each < kDepth - 1) continue;  // Two versions are not enough.
      CAPTURE(name);
      CAPTURE(each);
      const Asynchronous a(name, each);
      const test::RealRun run = a.run(a.lowered(a.costs({1, 1, 1, 1})));
      const test::PolicyFormulas formulas{name, kDepth, each};
      REQUIRE(run.learnt().versions.size() == run.program.size());
      int most_behind = 0;
      for (const InstructionId n : run.program.instructions.ids()) {
        const Instruction& i = run.program.instructions[n];
        const int recorded = run.learnt().versions[n];
        CAPTURE(to_text(run.program, n));
        REQUIRE(recorded == (i.is_compute() ? run.program.version_of(i) : -1));
        if (!i.is_compute()) continue;
        REQUIRE(recorded == expected(formulas, i));
        if (i.kind == InstructionKind::Forward) most_behind = std::max(most_behind, i.micro_batch() / each - recorded);
      }
      CHECK(most_behind == (kDepth - 1 + each - 1) / each);
    }
}

TEST_CASE("unequal stages: other times under every simulator and for real, the same versions") {
  for (const char* name : {"naive", "stash", "vertical-sync", "pipeoptim"}) {
    CAPTURE(name);
    const Asynchronous a(name, 1);
    const Program even = a.lowered(a.costs({1e-3, 1e-3, 1e-3, 1e-3}));
    const Program uneven = a.lowered(a.costs({2e-4, 3e-3, 5e-4, 3e-4}));
    CHECK(planned(even) == planned(uneven));
    const Cluster cluster = test::star(kDepth, 1e6, 1e-5);
    for (const BackendDef* backend : backends::catalog()) {
      if (backend->clock != Clock::Simulated || !backend->why_not().empty()) continue;
      CAPTURE(backend->name);
      CHECK(backend->run(even, cluster, {}).end != backend->run(uneven, cluster, {}).end);
    }
    const test::RealRun run = a.run(uneven);
    CHECK(trace_of(run.program, run.learnt().versions) == planned(even));
  }
}

}  // namespace stagecraft::trace_test
