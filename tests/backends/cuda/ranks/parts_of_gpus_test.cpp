// More devices than GPUs, and the thread blocks of NCCL.
#include <doctest/doctest.h>

#include "backends/cuda/ranks/nccl_communicators.hpp"
#include "sim/core/diagnostic.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"

namespace stagecraft::parts_of_gpus_test {

namespace {

emulated_gpu::Machine gpus(int count) {
  emulated_gpu::Machine machine;
  machine.devices = count;
  return machine;
}

}  // namespace

TEST_CASE("k devices on g GPUs are at most ceil(k / g) parts of each, one after the other") {
  struct Expected {
    int gpus, devices;
    std::vector<int> gpu_of;
    int multiprocessors;  // 132 are 16 groups of 8 and 4 more.
  };
  for (const Expected& e :
       {Expected{2, 4, {0, 0, 1, 1}, 64}, Expected{2, 5, {0, 0, 0, 1, 1}, 40}, Expected{3, 4, {0, 0, 1, 1}, 64},
        Expected{4, 4, {0, 1, 2, 3}, 132}, Expected{1, 4, {0, 0, 0, 0}, 32},
        Expected{2, 16, {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}, 16}}) {
    emulated_gpu::reset(gpus(e.gpus));
    const cuda::VirtualDevices devices(e.devices);
    for (int d = 0; d < e.devices; ++d) {
      CHECK(devices.gpu(d) == e.gpu_of[static_cast<std::size_t>(d)]);
      CHECK(devices.multiprocessors(d) == e.multiprocessors);
    }
  }
  emulated_gpu::reset(gpus(2));
  CHECK(cuda::VirtualDevices(4).description() ==
        "4 partitions of 64 of the 132 multiprocessors of each of 2 x Emulated GPU");
}

TEST_CASE("parts that leave whole groups of multiprocessors unused say so") {
  emulated_gpu::Machine machine = gpus(1);
  machine.groups = 15;  // As on a chip with a smaller cluster: eight parts have one group each, and seven are left.
  machine.fine_partitions = false;
  emulated_gpu::reset(machine);
  CHECK(cuda::VirtualDevices(8).description() ==
        "8 partitions of 8 of the 132 multiprocessors of Emulated GPU, 68 unused");
  emulated_gpu::reset(gpus(1));
  CHECK(cuda::VirtualDevices(8).description() == "8 partitions of 16 of the 132 multiprocessors of Emulated GPU");
}

TEST_CASE("parts are cut through clusters where whole groups would leave much of a GPU idle") {
  emulated_gpu::Machine machine = gpus(1);
  machine.groups = 15;
  emulated_gpu::reset(machine);
  CHECK(cuda::VirtualDevices(8).description() == "8 partitions of 16 of the 132 multiprocessors of Emulated GPU");
  CHECK(cuda::VirtualDevices(5).description().starts_with("5 partitions of 24 of the 132"));  // Nothing is left over.
  machine.groups = 16;
  emulated_gpu::reset(machine);
  CHECK(cuda::VirtualDevices(4).description() == "4 partitions of 32 of the 132 multiprocessors of Emulated GPU");
}

TEST_CASE("a run on parts of two GPUs has the numbers of the CPU, whatever carries its messages") {
  test::Case c;
  c.model = test::deep_net(4, 6, 8, 3);
  c.plan = test::stage_each(c.model, 4);
  const Program program = c.program();
  const Timeline cpu = test::on_cpu(c, program);
  for (const GpuMessages messages : {GpuMessages::Copy, GpuMessages::Nccl}) {
    c.messages = messages;
    for (emulated_gpu::Machine machine : test::machines(6)) {
      machine.devices = 2;
      const Timeline t = test::on_gpu(c, program, machine);
      CHECK(t.learnt->losses == cpu.learnt->losses);
      CHECK(t.learnt->weights == cpu.learnt->weights);
    }
  }
}

TEST_CASE("kernels of all communicators of a GPU fit on it at the same time") {
  for (const int stages : {2, 4, 8}) {
    test::Case c;
    c.model = test::deep_net(stages, 6, 8, 3);
    c.plan = test::stage_each(c.model, 4);
    const Program program = c.program();
    emulated_gpu::reset(gpus(stages));
    std::vector<cuda::GpuSlot> slots;
    for (int d = 0; d < stages; ++d) slots.push_back({0, d});
    const auto alone = [](const std::string& text) { return std::vector<std::string>{text}; };
    const cuda::NcclCommunicators ranks(program, slots, 0, {true, false, 0}, alone);
    // A stage in the middle has two neighbors and a communicator for each direction: 4 * 16 blocks are at most 128.
    CHECK(ranks.max_ctas() == 16);
    CHECK(cuda::NcclCommunicators(program, slots, 0, {true, false, 8}, alone).max_ctas() == 8);
    // All on one GPU of this process as far as NCCL knows: 14 communicators of eight stages have 8 blocks each.
    std::vector<cuda::GpuSlot> halves;
    for (int d = 0; d < stages; ++d) halves.push_back({0, d % 2});
    const cuda::NcclCommunicators crowded(program, halves, 0, {true, false, 0}, alone);
    CHECK(crowded.max_ctas() == (stages == 8 ? 8 : 16));
  }
}

}  // namespace stagecraft::parts_of_gpus_test
