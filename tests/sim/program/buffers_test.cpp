// When memory is allocated and freed, which weights an op reads, and the resident memory of a device.

#include <doctest/doctest.h>

#include "tests/support/listing.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::buffers_test {
namespace {

StageCost sized() {
  StageCost cost = test::times(1, 2);
  cost.memory.stash = Bytes{7}, cost.memory.recompute_stash = Bytes{93};
  cost.memory.weights = Bytes{1000}, cost.memory.gradients = Bytes{500}, cost.memory.optimizer = Bytes{2000};
  return cost;
}

Program two_stages(Plan plan, bool rendezvous, const char* schedule = "1f1b", int iterations = 1) {
  LoweringOptions options;
  options.rendezvous = rendezvous;
  options.iterations = iterations;
  return test::program_of(schedule, plan, uniform_costs(plan, sized()), options);
}

/// Versions that F and B read, "0F0:0 0F1:0 ..." in program order; updates are "0U0>1".
std::string versions(const Program& program, int stage) {
  std::string text;
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& i = program.instructions[n];
    if (!i.is_compute() || i.stage.value != stage) continue;
    text += text.empty() ? "" : " ";
    text +=
        to_text(program, n) + (i.kind == InstructionKind::Update ? ">" : ":") + std::to_string(program.version_of(i));
  }
  return text;
}

}  // namespace

TEST_CASE("rendezvous: the receiver's buffer lives from the transfer to the op that uses it") {
  const Program program = two_stages(test::dag_plan(2, 1, {{0, 1}}, 10), true);
  CHECK(test::buffers_text(program, 0) ==
        "outgoing 0F0..0>1:0F0 10\n"
        "received 0<1:1B0..0B0 10\n"
        "stash 0F0..0B0 100\n");
  CHECK(test::buffers_text(program, 1) ==
        "received 1<0:0F0..1F0 10\n"
        "stash 1F0..1B0 100\n"
        "outgoing 1B0..1>0:1B0 10\n");
}

TEST_CASE("eager: the receiver's buffer lives from the moment at which the data is sent") {
  const Program program = two_stages(test::dag_plan(2, 1, {{0, 1}}, 10), false);
  CHECK(test::buffers_text(program, 0) ==
        "outgoing 0F0..0>1:0F0 10\n"
        "received 1>0:1B0..0B0 10\n"
        "stash 0F0..0B0 100\n");
  CHECK(test::buffers_text(program, 1) ==
        "received 0>1:0F0..1F0 10\n"
        "stash 1F0..1B0 100\n"
        "outgoing 1B0..1>0:1B0 10\n");
}

TEST_CASE("recomputation: only the input is stashed, the rest lives from the recomputation on") {
  Plan plan = test::dag_plan(2, 1, {{0, 1}}, 10);
  plan.stages[StageId{0}].shape.recomputation = Recomputation::Full;
  const Program program = two_stages(plan, true);
  CHECK(test::buffers_text(program, 0) ==
        "outgoing 0F0..0>1:0F0 10\n"
        "received 0<1:1B0..0B0 10\n"
        "boundary 0F0..0B0 7\n"
        "stash 0R0..0B0 93\n");
}

TEST_CASE("recomputed activations are there during the backward; in a split backward, during the input gradient") {
  StageCost cost = sized();
  cost.memory.recompute_peak = Bytes{30};
  const Plan plan = test::dag_plan(1, 1, {});
  const auto text = [&](const char* order) {
    return test::buffers_text(
        test::lowered(complete(test::schedule_from({order}), plan, 1), plan, uniform_costs(plan, cost)), 0);
  };
  CHECK(text("0F0 0B0") == "stash 0F0..0B0 100\nboundary 0B0..0B0 30\n");
  CHECK(text("0F0 0I0 0W0") == "boundary 0I0..0I0 30\nstash 0F0..0W0 100\n");
}

TEST_CASE("a split backward keeps the stash until the weight gradient") {
  const Plan plan = test::dag_plan(1, 2, {});
  const Program program = test::lowered(complete(test::schedule_from({"0F0 0F1 0I0 0I1 0W1 0W0"}), plan, 1), plan,
                                        uniform_costs(plan, sized()));
  CHECK(test::buffers_text(program, 0) == "stash 0F1..0W1 100\nstash 0F0..0W0 100\n");
}

TEST_CASE("inference keeps nothing, not even gradients") {
  const Program program = two_stages(test::dag_plan(2, 1, {{0, 1}}, 10), true, "inference");
  CHECK(test::buffers_text(program, 0) == "outgoing 0F0..0>1:0F0 10\n");
  CHECK(test::buffers_text(program, 1) == "received 1<0:0F0..1F0 10\n");
  for (const ResidentMemory& m : program.memory) CHECK(m.total().value == 1000);
}

TEST_CASE("blocking communication uses the same buffers") {
  for (const bool rendezvous : {true, false}) {
    LoweringOptions options;
    options.rendezvous = rendezvous;
    const Plan plan = test::dag_plan(3, 4, {{0, 1}, {1, 2}}, 10);
    const auto sorted = [&](bool overlap, int device) {
      options.overlap = overlap;
      auto lines = split(
          test::buffers_text(test::program_of("1f1b", plan, uniform_costs(plan, sized()), options), device), '\n');
      std::sort(lines.begin(), lines.end());
      return lines;
    };
    for (int d = 0; d < 3; ++d) CHECK(sorted(true, d) == sorted(false, d));
  }
}

TEST_CASE("resident memory has weight versions, one gradient and one optimizer state for each stage") {
  const auto memory = [](const char* schedule) {
    return two_stages(test::dag_plan(2, 2, {{0, 1}}, 10), true, schedule, 3).memory.front();
  };
  CHECK(memory("1f1b").weights.value == 1000);
  CHECK(memory("1f1b").gradients.value == 500);
  CHECK(memory("1f1b").optimizer.value == 2000);
  CHECK(memory("1f1b").total().value == 3500);
  CHECK(memory("1f1b").weight_buffers == 1);
  CHECK(memory("2bw").weights.value == 2000);
  CHECK(memory("2bw").weight_buffers == 2);
  CHECK(memory("2bw").total().value == 4500);
  const Plan shared = chain_plan(4, 2, 1);
  const ResidentMemory two = test::program_of("inference", shared, uniform_costs(shared, sized())).memory[DeviceId{1}];
  CHECK(two.weights.value == 2000);
  CHECK(two.weight_buffers == 2);  // one of each stage
}

TEST_CASE("with a flush every op reads the newest version") {
  const Plan plan = test::dag_plan(2, 2, {{0, 1}}, 10);
  LoweringOptions options;
  options.iterations = 2;
  const Program program = test::program_of("1f1b", plan, uniform_costs(plan, sized()), options);
  CHECK(versions(program, 0) == "0F0:0 0F1:0 0B0:0 0B1:0 0U0>1 0F2:1 0F3:1 0B2:1 0B3:1 0U1>2");
  CHECK(versions(program, 1) == "1F0:0 1B0:0 1F1:0 1B1:0 1U0>1 1F2:1 1B2:1 1F3:1 1B3:1 1U1>2");
}

TEST_CASE("2bw: forward and backward on every stage read the version that is one update old") {
  const Plan plan = test::dag_plan(2, 2, {{0, 1}}, 10);
  LoweringOptions options;
  options.iterations = 4;
  const Program program = test::program_of("2bw", plan, uniform_costs(plan, sized()), options);
  CHECK(versions(program, 0) ==
        "0F0:0 0F1:0 0B0:0 0F2:0 0B1:0 0U0>1 0F3:0 0B2:0 0F4:1 0B3:0 0U1>2 0F5:1 0B4:1 0F6:2 0B5:1 0U2>3 0F7:2 0B6:2 "
        "0B7:2 0U3>4");
  CHECK(versions(program, 1) ==
        "1F0:0 1B0:0 1F1:0 1B1:0 1U0>1 1F2:0 1B2:0 1F3:0 1B3:0 1U1>2 1F4:1 1B4:1 1F5:1 1B5:1 1U2>3 1F6:2 1B6:2 1F7:2 "
        "1B7:2 1U3>4");
}

}  // namespace stagecraft::buffers_test
