// A GPU for each device of the plan: messages by copies or by NCCL, against the CPU.
#include <doctest/doctest.h>

#include "backends/cuda/ranks/nccl_communicators.hpp"
#include "sim/core/diagnostic.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"

namespace stagecraft::several_gpus_test {

namespace {

/// Every way for messages to go from GPU to GPU, each with another order of the streams.
void compare(test::Case c, int gpus) {
  const Program program = c.program();
  const Timeline cpu = test::on_cpu(c, program);
  std::vector<emulated_gpu::Machine> machines = test::machines(4);
  for (std::size_t way = 0; way < machines.size(); ++way) {
    c.messages = way < 2 ? GpuMessages::Nccl : GpuMessages::Copy;
    machines[way].devices = gpus;
    machines[way].peer_access = way % 2 == 0;
    CAPTURE(c.schedule);
    CAPTURE(gpus);
    CAPTURE(way);
    const Timeline gpu = test::on_gpu(c, program, machines[way]);
    REQUIRE(gpu.provenance.machine == std::to_string(gpus) + " x Emulated GPU");
    REQUIRE(gpu.learnt->losses == cpu.learnt->losses);
    REQUIRE(gpu.learnt->weights == cpu.learnt->weights);
    REQUIRE(gpu.learnt->versions == cpu.learnt->versions);
  }
}

test::Case chain(int depth, const char* schedule) {
  test::Case c;
  c.schedule = schedule;
  c.model = test::deep_net(depth, 6, 8, 3);
  c.plan = test::stage_each(c.model, 4);
  return c;
}

}  // namespace

TEST_CASE("synchronous schedules on two, four and eight GPUs") {
  for (const int gpus : {2, 4, 8})
    for (const char* schedule : {"gpipe", "1f1b"}) compare(chain(gpus, schedule), gpus);
}

TEST_CASE("several stages on a GPU") {
  for (const int gpus : {2, 4}) {
    test::Case c = chain(2 * gpus, "interleaved");
    for (int s = 0; s < 2 * gpus; ++s) c.plan.stages[StageId{s}].place_on({DeviceId{s % gpus}});
    compare(c, gpus);
  }
}

TEST_CASE("weights that change under way, and replicas that add up their gradients") {
  test::Case c = chain(4, "2bw");
  c.policy = "2bw";
  c.training.optimizer.kind = OptimizerKind::Momentum;
  c.iterations = 5;
  compare(c, 4);
  for (const char* schedule : {"pipedream", "1f1b"}) {
    c = chain(3, schedule);
    c.policy = c.schedule == "1f1b" ? "flush" : "stash";
    c.plan = test::stage_each(c.model, 4, 4);
    c.plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{3}});
    compare(c, 4);
  }
}

TEST_CASE("however the streams are laid out") {
  test::Case c = chain(3, "1f1b");
  for (const bool rendezvous : {true, false})
    for (const StreamModel streams :
         {StreamModel::Single, StreamModel::Pair, StreamModel::Direction, StreamModel::None}) {
      c.lowering.rendezvous = rendezvous;
      c.lowering.streams = streams;
      compare(c, 3);
    }
}

TEST_CASE("a longer run takes no more memory") {
  test::Case c = chain(3, "1f1b");
  c.messages = GpuMessages::Nccl;
  c.lowering.rendezvous = false;
  c.lowering.streams = StreamModel::None;  // What takes messages never waits for what computes.
  emulated_gpu::Machine machine;
  machine.devices = 3;
  std::vector<std::int64_t> blocks;
  for (const int iterations : {2, 12}) {
    c.iterations = iterations;
    test::on_gpu(c, c.program(), machine);
    blocks.push_back(emulated_gpu::blocks());
  }
  CHECK(blocks.front() == blocks.back());
}

TEST_CASE("what fails within a group of calls of NCCL ends it, so that the next call starts") {
  emulated_gpu::Machine machine;
  machine.devices = 2;
  emulated_gpu::reset(machine);
  const Program program = chain(2, "1f1b").program();
  const auto alone = [](const std::string& text) { return std::vector{text}; };
  cuda::NcclCommunicators ranks(program, {{0, 0}, {0, 1}}, 0, {true, false},
                                alone);  // Without open() there is nothing to send with.
  const cuda::MessageEnd one{DeviceId{0}, DeviceId{1}, &machine, 1, true, {}};
  CHECK_THROWS_WITH_AS(ranks.carry(0, {one}), doctest::Contains("ncclSend"), cuda::CudaError);
  const cuda::Nccl nccl;
  CHECK(nccl.ncclGroupEnd() == ncclInvalidUsage);  // None is open.
}

TEST_CASE("a kernel that copies has to reach the other GPU") {
  test::Case c = chain(2, "1f1b");
  c.messages = GpuMessages::Kernel;
  emulated_gpu::Machine machine;
  machine.devices = 2;
  machine.peer_access = false;
  CHECK_THROWS_WITH_AS(test::on_gpu(c, c.program(), machine), doctest::Contains("cannot reach the memory of GPU"),
                       BackendError);
}

}  // namespace stagecraft::several_gpus_test
