// Messages by NCCL, from a rank to itself.
#include <nccl.h>

#include <doctest/doctest.h>

#include "backends/cuda/libraries.hpp"
#include "backends/cuda/ranks/nccl_communicators.hpp"
#include "sim/core/diagnostic.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"

namespace stagecraft::nccl_test {

TEST_CASE("messages by NCCL: the same bits, however the streams are laid out") {
  test::Case c;
  c.model = test::deep_net(4, 6, 8, 3);
  c.plan = test::stage_each(c.model, 5);
  c.messages = GpuMessages::Nccl;
  for (const bool rendezvous : {true, false})
    for (const StreamModel streams :
         {StreamModel::Single, StreamModel::Pair, StreamModel::Direction, StreamModel::None}) {
      c.lowering.rendezvous = rendezvous;
      c.lowering.streams = streams;
      const Program program = c.program();
      const Timeline cpu = test::on_cpu(c, program);
      for (const emulated_gpu::Machine& machine : test::machines(12)) {
        const Timeline gpu = test::on_gpu(c, program, machine);
        REQUIRE(gpu.learnt->losses == cpu.learnt->losses);
        REQUIRE(gpu.learnt->weights == cpu.learnt->weights);
      }
    }
}

TEST_CASE("what NCCL refuses is an error, not a hang") {
  emulated_gpu::reset();
  const cuda::Nccl nccl;
  ncclUniqueId id;
  REQUIRE(nccl.ncclGetUniqueId(&id) == ncclSuccess);
  ncclComm_t one = nullptr;
  CHECK(nccl.ncclCommInitRankConfig(&one, 2, id, 2, nullptr) == ncclInvalidArgument);
  REQUIRE(nccl.ncclCommInitRankConfig(&one, 1, id, 0, nullptr) == ncclSuccess);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  const cuda::Block block(16);
  CHECK(nccl.ncclSend(block.as<char>(), 8, ncclInt8, 0, one, stream) == ncclInvalidUsage);
  nccl.ncclGroupStart();
  CHECK(nccl.ncclSend(block.as<char>(), 8, ncclInt8, 0, one, stream) == ncclSuccess);
  CHECK(nccl.ncclRecv(block.as<char>() + 8, 8, ncclInt8, 0, one, stream) == ncclSuccess);
  CHECK(nccl.ncclGroupEnd() == ncclSuccess);
  CHECK(nccl.ncclGroupEnd() == ncclInvalidUsage);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  nccl.ncclCommDestroy(one);
}

TEST_CASE("more streams on a GPU than it has hardware queues are refused before anything runs") {
  emulated_gpu::reset();
  cuda::Queues queues;
  const auto add = [&] {
    cudaStream_t stream = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    queues.add(stream, 0);
  };
  for (int n = 0; n < 28; ++n) add();
  CHECK_NOTHROW(cuda::require_queues(queues, {0, 0, 1}));  // Each communicator has two of its own.
  CHECK_THROWS_WITH_AS(
      cuda::require_queues(queues, {0, 0, 0}),
      doctest::Contains(
          "GPU 0 would have 34 streams, including the streams of 3 NCCL communicators, but has 32 hardware"),
      InputError);
  add();
  CHECK_THROWS_AS(cuda::require_queues(queues, {0, 0}), InputError);
}

}  // namespace stagecraft::nccl_test
