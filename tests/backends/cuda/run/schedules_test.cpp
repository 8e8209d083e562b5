// Programs on the emulated GPU against the CPU: the same kernels, so the same bits, in whatever order streams go on.
#include <doctest/doctest.h>

#include "tests/backends/cuda/run/gpu_case.hpp"

namespace stagecraft::schedules_test {

namespace {

constexpr int kOrders = 12;

void compare(const test::Case& c, int orders = kOrders) {
  CAPTURE(c.schedule);
  CAPTURE(c.policy);
  CAPTURE(c.plan.stage_count());
  const Program program = c.program();
  const Timeline cpu = test::on_cpu(c, program);
  for (const emulated_gpu::Machine& machine : test::machines(orders)) {
    CAPTURE(machine.seed);
    const Timeline gpu = test::on_gpu(c, program, machine);
    REQUIRE(gpu.learnt->losses == cpu.learnt->losses);
    REQUIRE(gpu.learnt->weights == cpu.learnt->weights);
    REQUIRE(gpu.learnt->versions == cpu.learnt->versions);
  }
}

}  // namespace

TEST_CASE("synchronous schedules on two, four and eight devices") {
  for (const int depth : {2, 4, 8})
    for (const char* schedule : {"gpipe", "1f1b", "graph"}) {
      test::Case c;
      c.schedule = schedule;
      c.model = test::deep_net(depth, 6, 8, 3);
      c.plan = test::stage_each(c.model, 6);
      compare(c);
    }
}

TEST_CASE("several stages on a device, in a loop and in a V, with split backwards") {
  test::Case c;
  c.model = test::deep_net(8, 6, 8, 3);
  const auto placed = [&](bool round_trip) {
    Plan plan = test::stage_each(c.model, 8);
    for (int s = 0; s < 8; ++s) plan.stages[StageId{s}].place_on({DeviceId{round_trip && s >= 4 ? 7 - s : s % 4}});
    return plan;
  };
  c.plan = placed(false);
  for (const char* schedule : {"interleaved", "interleaved-zb"}) {
    c.schedule = schedule;
    compare(c);
  }
  c.plan = placed(true);
  c.schedule = "zb-v";
  compare(c);
}

TEST_CASE("weights that change under way: stashed, double buffered, predicted, reconstructed") {
  for (const char* policy : {"stash", "2bw", "pipeoptim", "pipemare"}) {
    test::Case c;
    c.schedule = std::string_view(policy) == "2bw" ? "2bw" : "pipedream";
    c.policy = policy;
    c.model = test::deep_net(4, 6, 8, 3);
    c.plan = test::stage_each(c.model, 4);
    c.training.optimizer.kind = OptimizerKind::Momentum;
    c.iterations = 5;
    compare(c);
  }
}

TEST_CASE("replicas add up their gradients in the order of the CPU") {
  for (const char* schedule : {"1f1b", "pipedream"}) {
    test::Case c;
    c.schedule = schedule;
    c.policy = c.schedule == "1f1b" ? "flush" : "stash";
    c.model = test::deep_net(3, 6, 8, 3);
    c.plan = test::stage_each(c.model, 4, 4);
    c.plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{3}});
    for (const bool slots : {false, true}) {
      c.training.slots = slots && c.schedule == "1f1b";
      c.lowering.gradient_slots = c.training.slots;
      compare(c, 2 * kOrders);
    }
  }
}

TEST_CASE("recomputation, whole numbers and 32-bit numbers") {
  test::Case c;
  c.model = test::deep_net(4, 6, 8, 3);
  c.plan = test::stage_each(c.model, 4);
  for (Stage& stage : c.plan.stages) stage.shape.recomputation = Recomputation::Full;
  compare(c);
  c.model = test::deep_net(4, 6, 8, 3, OperationKind::Relu, OperationKind::SumSquare);
  c.plan = test::stage_each(c.model, 4);
  c.training = test::training_of(OptimizerKind::Integer, 1, "integers");
  compare(c);
  c.model = test::deep_net(4, 6, 8, 3, OperationKind::Tanh, OperationKind::MeanSquare, 4);
  c.training = test::training_of(OptimizerKind::Adam, 0.01, "teacher");
  compare(c);
}

TEST_CASE("how communication is laid out changes nothing") {
  test::Case c;
  c.model = test::deep_net(4, 6, 8, 3);
  c.plan = test::stage_each(c.model, 5);
  for (const bool overlap : {true, false})
    for (const bool rendezvous : {true, false})
      for (const StreamModel streams :
           {StreamModel::Single, StreamModel::Pair, StreamModel::Direction, StreamModel::None}) {
        c.lowering.overlap = overlap;
        c.lowering.rendezvous = rendezvous;
        c.lowering.streams = streams;
        compare(c);
      }
}

TEST_CASE("a graph of stages: forks, branches and a join") {
  for (const int branches : {2, 3}) {
    const test::Branched b = test::branched(branches, 4);
    test::Case c;
    c.schedule = "graph";
    c.model = b.model;
    c.plan = b.plan;
    compare(c);
  }
}

TEST_CASE("weights that two layers of a stage share") {
  test::Case c;
  c.model = test::deep_net(4, 6, 8, 3);
  c.model.layers[LayerId{2}].tie = c.model.layers[LayerId{3}].tie = "shared";
  c.plan = test::stage_each(c.model, 4);
  c.plan.stages[StageId{1}].shape.layers.push_back(c.plan.stages[StageId{2}].shape.layers.front());
  c.plan.stages[StageId{2}] = c.plan.stages.back();
  c.plan.stages.pop_back();
  c.plan.stages[StageId{2}].place_on({DeviceId{2}});
  c.plan.edges.clear();
  test::connect(c.plan, c.model);
  compare(c);
}

}  // namespace stagecraft::schedules_test
