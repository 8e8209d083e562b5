// WPipe: two groups of stages, one on each half of every rank, updated in turn. From m = 2(p - 1) on the first group
// needs two versions and is one update old; the second needs one version and is never old.

#include <doctest/doctest.h>

#include "sim/experiment/run.hpp"
#include "sim/result/report.hpp"
#include "tests/support/ideal.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::wpipe_test {
namespace {

Plan two_groups(int ranks, int micro_batches) {
  return plan_for(get_from(schedules::catalog(), "schedule", "wpipe"), ranks, 2, micro_batches);
}

Program program_of(const char* name, const Plan& plan, const StageCost& cost, int iterations) {
  return test::program_of(name, plan, uniform_costs(plan, cost), test::pure_delays(iterations));
}

Report report_of(const Program& program) {
  const Cluster cluster = test::delay_cluster(program.devices, 0);
  return measure(program, test::run_ideal(program, cluster), cluster);
}

StageCost with_weights(double bytes) {
  StageCost cost = test::times(1, 1);
  cost.memory.weights = Bytes{bytes};
  return cost;
}

}  // namespace

TEST_CASE("wpipe: the order on two ranks equals the one by hand") {
  CHECK(test::rows_of(test::build("wpipe", two_groups(2, 2), 3)) ==
        std::vector<std::string>{"0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2U0 2F2 0B0 2F3 0B1 0U0 0F4 2B2 0F5 2B3 2U1 2F4 0B2 "
                                 "2F5 0B3 0U1 2B4 2B5 2U2 0B4 0B5 0U2",
                                 "1F0 1F1 3F0 3B0 3F1 3B1 3U0 1F2 1B0 1F3 1B1 1U0 3F2 3B2 3F3 3B3 3U1 1F4 1B2 1F5 1B3 "
                                 "1U1 3F4 3B4 3F5 3B5 3U2 1B4 1B5 1U2"});
}

TEST_CASE("wpipe: the first group reads weights that are one update old, the second the newest") {
  for (const int p : {1, 2, 4, 8})
    for (const int m : {std::max(1, 2 * (p - 1)), 2 * p, 3 * p + 1}) {
      CAPTURE(p);
      CAPTURE(m);
      const Program program = program_of("wpipe", two_groups(p, m), with_weights(10), 5);
      int reads = 0;
      for (const Instruction& i : program.instructions) {
        if (i.kind != InstructionKind::Forward && i.kind != InstructionKind::Backward) continue;
        const int update = program.iteration_of(i), staleness = i.stage.value < p ? std::min(update, 1) : 0;
        CHECK(update - i.version() == staleness);
        ++reads;
      }
      CHECK(reads == 2 * 2 * p * m * 5);
      for (int s = 0; s < 2 * p; ++s) CHECK(program.delays[StageId{s}] == (s < p ? 1 : 0));
    }
}

TEST_CASE("wpipe keeps three copies of half the weights, and more activations than 2bw") {
  for (const int p : {2, 4, 8})
    for (const int m : {2 * (p - 1), 3 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      const Program groups = program_of("wpipe", two_groups(p, m), with_weights(500), 4);
      const Program whole = program_of("2bw", chain_plan(p, p, m), with_weights(1000), 4);
      const Report report = report_of(groups), other = report_of(whole);
      for (int r = 0; r < p; ++r) {
        const auto d = static_cast<std::size_t>(r);
        CHECK(groups.memory[DeviceId{d}].weight_buffers == 3);
        CHECK(groups.memory[DeviceId{d}].weights.value == 1500);
        CHECK(whole.memory[DeviceId{d}].weights.value == 2000);
        CHECK(report.devices[DeviceId{d}].memory.activations ==
              2 * (p - 1 - r) + m + 1);  // Each of half a rank's layers.
        CHECK(other.devices[DeviceId{d}].memory.activations == p - r);
      }
    }
}

TEST_CASE("wpipe has no bubble, and a period of 2m(F + B)") {
  for (const int p : {1, 2, 4, 8})
    for (const int m : {std::max(1, 2 * (p - 1)), 2 * p - 1, 3 * p, 5 * p})
      for (const double backward : {1.0, 2.0, 0.5}) {
        CAPTURE(p);
        CAPTURE(m);
        const Report r = report_of(program_of("wpipe", two_groups(p, m), test::times(1, backward), 6));
        CHECK(r.period.value == 2 * m * (1 + backward));
        CHECK(r.steady_bubble == 0);
      }
}

TEST_CASE("wpipe: too few micro-batches for two versions are refused") {
  for (const int p : {3, 4, 8}) {
    CHECK_NOTHROW(test::build("wpipe", two_groups(p, 2 * (p - 1)), 3));
    try {
      test::build("wpipe", two_groups(p, 2 * (p - 1) - 1), 3);
      FAIL("too few micro-batches went unnoticed");
    } catch (const Infeasible& error) {
      CHECK(error.code() == "micro-batches");
      CHECK(std::string(error.what()).find("at least " + std::to_string(2 * (p - 1))) != std::string::npos);
    }
  }
}

TEST_CASE("wpipe: a real run uses the planned versions and buffers") {
  const Experiment scenario =
      load_experiment("examples/quickstart",
                      {"run.schedule=wpipe", "run.micro_batches=3", "run.iterations=6", "plan.micro_batch_size=2",
                       "model={builder: mlp, widths: [8, 8, 8, 8, 8, 4], activation: tanh, loss: mean_square}",
                       "training.task=teacher"});
  const CompiledExperiment p = compile(scenario);
  const Timeline timeline = execute(p, "cpu", true);
  REQUIRE(timeline.learnt.has_value());
  for (std::size_t d = 0; d < p.program.memory.size(); ++d)
    CHECK(timeline.learnt->memory[DeviceId{d}].weight_buffers == p.program.memory[DeviceId{d}].weight_buffers);
  for (const InstructionId n : p.program.instructions.ids())
    if (const Instruction& i = p.program.instructions[n]; i.is_compute())
      CHECK(timeline.learnt->versions[n] == i.version());
}

}  // namespace stagecraft::wpipe_test
