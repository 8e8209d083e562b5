// Every weights policy on every schedule: lowered, checked and run. What a prediction costs shows in the period.

#include <doctest/doctest.h>

#include "tests/support/checked.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::weights_test {
namespace {

constexpr int kIterations = 4;

/// The `run.schedule` map of the entries that need one.
config::Value options_of(const ScheduleDef& def) {
  if (def.name != "csv") return def.fields ? test::checked("{}", *def.fields) : config::Value{};
  return test::checked(
      "rows: ['0F0,0F1,0F2,0I0,0I1,0W0,0I2,0W1,0W2', '1F0,1I0,1F1,1I1,1F2,1W0,1I2,1W1,1W2', "
      "'2F0,2I0,2W0,2F1,2I1,2W1,2F2,2I2,2W2']",
      *def.fields);
}

std::vector<WeightsRule> all_rules() {
  std::vector<WeightsRule> rules;
  for (const WeightsDef* def : weights::catalog()) {
    rules.push_back(def->paper);
    if (def->as_released) rules.push_back(*def->as_released);
  }
  return rules;
}

StageCost cost(double forward, double backward) {
  StageCost result = test::times(forward, backward, 0.5);
  result.touch = Seconds{0.25};
  return result;
}

/// End of the update of stage 0 that makes this version.
double made_at(const Program& program, const Timeline& timeline, int version) {
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& i = program.instructions[n];
    if (i.kind == InstructionKind::Update && i.stage.value == 0 && i.version() == version) return timeline.end[n];
  }
  FAIL("no such update");
  return 0;
}

}  // namespace

TEST_CASE("every policy on every schedule") {
  int programs = 0;
  for (const ScheduleDef* def : schedules::catalog()) {
    const config::Value options = options_of(*def);
    for (const bool recompute : {true, false}) {
      // Three ranks as far as the schedule can have them; where pairs are asked for, two.
      const bool pairs = !test::takes(*def, 3, 3);
      Plan plan = pairs ? test::least_plan(*def, 2, 6) : test::least_plan(*def, 3, 3);
      for (StageEdge& edge : plan.edges) edge.bytes = Bytes{10};
      plan.stages[StageId{0}].shape.recomputation =
          recompute && def->trains ? Recomputation::Full : Recomputation::None;
      const StageCosts costs = uniform_costs(plan, cost(1, 2));
      const Schedule schedule = build_schedule(*def, {.plan = plan,
                                                      .costs = costs,
                                                      .iterations = kIterations,
                                                      .options = read_options(*def, def->fields ? &options : nullptr)});
      for (const WeightsRule& rule : all_rules())
        for (const bool overlap : {true, false}) {
          CAPTURE(def->name);
          LoweringOptions how;
          how.overlap = overlap;
          how.rendezvous = overlap;  // a blocking rendezvous may deadlock without any prediction
          how.iterations = kIterations;
          ++programs;
          if (!overlap && !test::runs_blocked(*def)) continue;
          // The second group's turn lies between, so the first is not as far as the number of stages says.
          if (def->name == "wpipe" && rule.forward == ForwardWeights::Vertical) {
            CHECK_THROWS_AS(lower(schedule, plan, costs, rule, how), Infeasible);
            continue;
          }
          const Program program = lower(schedule, plan, costs, rule, how);
          check_program(program);
          const Timeline timeline = test::run_ideal(program, test::delay_cluster(3, 0.1));
          CHECK(timeline.end.size() == program.size());
        }
    }
  }
  CHECK(programs == static_cast<int>(schedules::catalog().size() * all_rules().size() * 4));
}

TEST_CASE("a prediction costs its time and nothing else: the period of the stage that sets it") {
  // Stage 0 takes 3 + 3 + 0.5 for each micro-batch, stage 1 only 1 + 1 + 0.5: stage 0 never waits, so an update of
  // one micro-batch comes every 6.5, and with a forward's prediction (W, m, v read, W' written) 4 x 0.25 later.
  const Plan plan = chain_plan(2, 2, 1);
  const StageCosts costs = {{cost(3, 3)}, {cost(1, 1)}};
  LoweringOptions options = test::pure_delays(8);
  const auto period = [&](std::string_view policy) {
    const Program program = test::lowered(test::build("pipedream", plan, 8), plan, costs, options, policy);
    const Timeline timeline = test::run_ideal(program, test::delay_cluster(2, 0));
    return made_at(program, timeline, 6) - made_at(program, timeline, 5);
  };
  CHECK(period("naive") == doctest::Approx(6.5).epsilon(1e-12));
  CHECK(period("stash") == doctest::Approx(6.5).epsilon(1e-12));
  CHECK(period("pipeoptim") == doctest::Approx(6.5 + 4 * 0.25).epsilon(1e-12));
  // PipeMare reads W and delta and writes W', and its updates keep delta.
  CHECK(period("pipemare") == doctest::Approx(6.5 + 3 * 0.25 + 4 * 0.25).epsilon(1e-12));
}

TEST_CASE("a prediction runs while the inputs of its op travel") {
  // The second stage of three, D - 1 - k = 1: its forward waits for the message, the prediction does not.
  const Plan plan = test::dag_plan(3, 1, {{0, 1}, {1, 2}}, 10);
  const Program program = test::lowered(test::build("pipedream", plan, 3), plan, uniform_costs(plan, cost(1, 1)),
                                        test::pure_delays(3), "pipeoptim");
  const Timeline timeline = test::run_ideal(program, test::delay_cluster(3, 5));
  const InstructionId predict = test::find(program, "1PF0");
  const InstructionId forward = test::find(program, "1F0");
  CHECK(timeline.start[predict] == 0);
  CHECK(timeline.end[predict] == 1);
  CHECK(timeline.start[forward] == doctest::Approx(7).epsilon(1e-12));  // 0PF0, 0F0 and the message
}

}  // namespace stagecraft::weights_test
