// Profiles of GPUs: messages take the way that runs take.
#include <doctest/doctest.h>

#include "backends/cuda/measure.hpp"
#include "sim/core/diagnostic.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"

namespace stagecraft::measure_test {

namespace {

/// Copies on the stream, and counts what it copies.
struct Copies {
  int count = 0;
  cuda::CopyKernel kernel() {
    return [this](const void* from, void* to, std::size_t bytes, cudaStream_t stream) {
      ++count;
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
    };
  }
};

Profile profile_of(GpuMessages messages, Copies& copies, int gpus = 1, int devices = 2) {
  emulated_gpu::Machine machine;
  machine.devices = gpus;
  emulated_gpu::reset(machine);
  test::Case c;
  c.model = test::deep_net(2, 6, 8, 3);
  c.plan = test::stage_each(c.model, 4);
  const Program program = c.program();
  ProfileRequest request{*program.workload, {2}};
  request.threads = devices;
  request.seconds = 0;
  request.gpu.messages = messages;
  return cuda::measure(request, test::queued_cpu, copies.kernel());
}

}  // namespace

TEST_CASE("a profile has messages by what the run will use, and says so") {
  Copies copies;
  for (const GpuMessages messages : {GpuMessages::Copy, GpuMessages::Kernel, GpuMessages::Nccl}) {
    copies.count = 0;
    const Profile profile = profile_of(messages, copies);
    CHECK(profile.messages == to_text(messages));
    CHECK((copies.count > 0) == (messages == GpuMessages::Kernel));
    CHECK(profile.latency.value > 0);
    CHECK(profile.bandwidth.value > 0);
    CHECK(!profile.layers.empty());
    REQUIRE(profile.gpu);
    CHECK(profile.gpu->parts == 2);
  }
}

TEST_CASE("messages of a profile go from GPU to GPU, by NCCL if runs do") {
  Copies copies;
  for (const GpuMessages messages : {GpuMessages::Copy, GpuMessages::Nccl}) {
    const Profile profile = profile_of(messages, copies, 2);
    CHECK(profile.messages == to_text(messages));
    CHECK(profile.latency.value > 0);
    CHECK(!profile.gpu);
  }
}

TEST_CASE("a profile of parts of several GPUs is refused") {
  Copies copies;
  CHECK_THROWS_WITH_AS(profile_of(GpuMessages::Copy, copies, 2, 4),
                       doctest::Contains("4 devices are parts of several GPUs"), InputError);
}

}  // namespace stagecraft::measure_test
