// Gradients summed in buckets on the emulated GPU: in whatever order streams go on, the bits of one sum at the end.
#include <doctest/doctest.h>

#include "tests/backends/cuda/run/gpu_case.hpp"
#include "tests/support/bucket_case.hpp"
#include "tests/support/buckets.hpp"

namespace stagecraft::buckets_test {
namespace {

test::Case halves(const char* schedule) {
  test::Case c;
  c.schedule = schedule;
  c.model = test::deep_net(6, 6, 8, 3);
  c.plan = test::replicated_halves(c.model, 4);
  return c;
}

Program bucketed(const test::Case& c) { return test::in_buckets(c.program(), {0.125, 0.5, 0.375}, {0.25, 0.5, 1}); }

void compare(const test::Case& c, const std::vector<emulated_gpu::Machine>& machines) {
  CAPTURE(c.schedule);
  const Timeline cpu = test::on_cpu(c, c.program());
  const Program program = bucketed(c);
  for (const emulated_gpu::Machine& machine : machines) {
    CAPTURE(machine.seed);
    const Timeline gpu = test::on_gpu(c, program, machine);
    REQUIRE(gpu.learnt->losses == cpu.learnt->losses);
    REQUIRE(gpu.learnt->weights == cpu.learnt->weights);
    if (c.graph) CHECK(gpu.enqueued->launches > 0);
  }
}

}  // namespace

TEST_CASE("parts of one GPU: call by call, as graphs and with slots") {
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    test::Case c = halves(schedule);
    compare(c, test::machines(12));
    c.timing = GpuTiming::Off;
    c.graph = true;
    compare(c, test::machines(6));
    c.training.slots = c.lowering.gradient_slots = true;
    compare(c, test::machines(6));
  }
}

TEST_CASE("a GPU for each device, sums by NCCL or in order") {
  std::vector<emulated_gpu::Machine> machines = test::machines(6);
  for (emulated_gpu::Machine& m : machines) m.devices = 5;
  test::Case c = halves("1f1b");
  compare(c, machines);
  c.plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{3}});
  c.messages = GpuMessages::Nccl;
  c.sums = GpuSums::Collective;
  for (emulated_gpu::Machine& m : machines) m.devices = 4;
  compare(c, machines);
}

TEST_CASE("a bucket starts before its backward has ended") {
  const test::Case c = halves("1f1b");
  const Program p = bucketed(c);
  int early = 0, late = 0;
  for (const emulated_gpu::Machine& machine : test::machines(6)) {
    const Timeline gpu = test::on_gpu(c, p, machine);
    for (const CollectiveCall& sum : p.collectives)
      for (int m = 0; m < sum.members; ++m)
        for (const InstructionId w : p.waits_for(sum.member(m))) {
          if (!p.at(w).is_compute()) continue;
          const bool before = gpu.start[sum.first] < gpu.end[w];
          early += before && sum.bucket == 0;
          late += before && sum.bucket == 2;
        }
  }
  CHECK(early > 0);
  CHECK(late == 0);
}

}  // namespace stagecraft::buckets_test
