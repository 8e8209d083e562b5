// Programs in which one device stands for a group, unfolded to one with instructions for every device.

#include <doctest/doctest.h>

#include <set>

#include "sim/program/unfold.hpp"
#include "tests/support/nets.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::unfold_test {

namespace {

/// Two stages of `replicas` groups each.
Plan plan_of(const Degrees& degrees, StateSharding sharding = StateSharding::None) {
  Plan plan = chain_plan(2, 2, 4);
  for (const StageId s : plan.stages.ids()) {
    Stage& stage = plan.stages[s];
    stage.name = "s" + std::to_string(s.value);
    stage.shape.degrees = degrees;
    stage.shape.sharding = sharding;
    stage.micro_batch_size = degrees.replicas;
    std::vector<DeviceId> devices;
    for (int d = 0; d < degrees.devices(); ++d) devices.emplace_back(s.value * degrees.devices() + d);
    stage.place_on(devices);
  }
  plan.mini_batch = 4 * degrees.replicas;
  for (StageEdge& edge : plan.edges) edge.bytes = Bytes{8};
  return plan;
}

Program folded(const Plan& plan, bool rendezvous = true) {
  LoweringOptions options;
  options.iterations = 2;
  options.rendezvous = rendezvous;
  return test::program_of("1f1b", plan, uniform_costs(plan, test::times(1, 2)), options);
}

}  // namespace

TEST_CASE("every member of a group has the instructions of the device that stands for it") {
  for (const bool rendezvous : {true, false}) {
    const Plan plan = plan_of({.replicas = 2, .context = 2, .tensor = 2});
    const Program program = folded(plan, rendezvous);
    const UnfoldedProgram unfolded = unfold(program, plan);
    check_program(unfolded.program);
    CHECK(unfolded.program.devices == 16);
    CHECK(unfolded.program.size() == 4 * program.size());
    CHECK(unfolded.program.transfers.size() == 4 * program.transfers.size());
    REQUIRE(unfolded.leaders.size() == program.size());
    for (const InstructionId i : program.instructions.ids()) {
      const Instruction &one = program.at(i), &copy = unfolded.program.at(unfolded.leaders[i]);
      CHECK(copy.device == one.device);
      CHECK(copy.kind == one.kind);
      CHECK(copy.stage == one.stage);
      CHECK(copy.number == one.number);
      std::set<InstructionId> waits, copies;
      for (const InstructionId w : program.waits_for(i)) waits.insert(unfolded.leaders[w]);
      for (const InstructionId w : unfolded.program.waits_for(unfolded.leaders[i])) copies.insert(w);
      CHECK(copies == waits);
    }
  }
}

TEST_CASE("gradients are summed over all devices with a tensor rank, replicas first") {
  const Plan plan = plan_of({.replicas = 2, .context = 2, .tensor = 2});
  const Program unfolded = unfold(folded(plan), plan).program;
  REQUIRE(unfolded.collectives.size() == 2 * 2 * 2);  // Stages, tensor ranks, updates.
  const CollectiveCall& c = unfolded.collectives.front();
  REQUIRE(c.members == 4);
  std::vector<int> devices;
  for (int m = 0; m < c.members; ++m) devices.push_back(unfolded.at(c.member(m)).device.value);
  CHECK(devices == std::vector<int>{8, 10, 12, 14});
  CHECK(unfolded.shape(c).kind == CollectiveKind::AllReduce);
  const Plan divided = plan_of({.replicas = 2, .tensor = 2}, StateSharding::Optimizer);
  const Program scattered = unfold(folded(divided), divided).program;
  CHECK(scattered.shape(scattered.collectives.front()).kind == CollectiveKind::ReduceScatter);
}

TEST_CASE("groups that differ by stage are refused") {
  Plan plan = plan_of({.tensor = 2});
  const Program program = folded(plan);
  plan.stages[StageId{1}].shape.degrees = {.context = 2};
  CHECK_THROWS_WITH_AS(unfold(program, plan), doctest::Contains("groups of different shapes"), InputError);
  CHECK(has_groups(plan));
  CHECK(!has_groups(plan_of({.replicas = 2})));
  CHECK(has_groups(plan_of({.replicas = 2}, StateSharding::Optimizer)));
}

}  // namespace stagecraft::unfold_test
