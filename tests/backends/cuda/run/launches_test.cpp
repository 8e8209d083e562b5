// How much work streams hold, and how many streams there are.
#include <doctest/doctest.h>

#include "backends/cuda/launch_meter.hpp"
#include "sim/core/diagnostic.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"

namespace stagecraft::launches_test {

namespace {

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  return stream;
}

void launch(cudaStream_t stream) {
  emulated_gpu::enqueue(stream, [] {});
  cuda::submitted(stream, "a kernel");
}

/// One stage of forty layers, so that 64 instructions have thousands of launches.
test::Case long_case() {
  test::Case c;
  c.schedule = "gpipe";
  c.model = test::deep_net(40, 6, 8, 3);
  Stage& stage = c.plan.stages.emplace_back();
  stage.name = "all";
  for (const LayerId l : c.model.layers.ids()) stage.shape.layers.push_back(l);
  stage.place_on({DeviceId{0}});
  stage.micro_batch_size = 2;
  c.plan.mini_batch = 32 * stage.micro_batch_size;
  return c;
}

}  // namespace

TEST_CASE("a call into a full queue blocks, and the meter waits before that") {
  emulated_gpu::reset();
  const cudaStream_t stream = new_stream();
  for (int n = 0; n < 3000; ++n) launch(stream);
  CHECK(emulated_gpu::blocked_calls() == 3000 - 1024);  // Each call after the queue is full.

  for (const int streams : {1, 32, 33, 64}) {
    emulated_gpu::reset();
    cuda::LaunchMeter meter;
    const cuda::Metered metered(&meter);
    meter.share_queues(streams);
    const cudaStream_t metered_stream = new_stream();
    for (int n = 0; n < 3000; ++n) launch(metered_stream);
    CHECK(meter.calls() == 3000);
    CHECK(emulated_gpu::blocked_calls() == 0);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    meter.forget();
  }
}

TEST_CASE("streams that share a hardware queue share its entries") {
  for (const bool shared : {false, true}) {
    emulated_gpu::Machine machine;
    machine.queue = cuda::LaunchMeter::kQueue / 2;  // As much as each of two streams has of one queue.
    emulated_gpu::reset(machine);
    cuda::LaunchMeter meter;
    const cuda::Metered metered(&meter);
    if (shared) meter.share_queues(64);
    const cudaStream_t stream = new_stream();
    for (int n = 0; n < 3000; ++n) launch(stream);
    CHECK((emulated_gpu::blocked_calls() == 0) == shared);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    meter.forget();
  }
}

TEST_CASE("a GPU that is stuck is noticed while its queue fills") {
  emulated_gpu::reset();
  const cudaStream_t stream = new_stream();
  emulated_gpu::hang(stream);
  cuda::LaunchMeter meter;
  const cuda::Metered metered(&meter);
  meter.wait_by(cuda::at_most(0.05));
  int launched = 0;
  CHECK_THROWS_AS(
      [&] {
        for (; launched < 2000; ++launched) launch(stream);
      }(),
      BackendError);
  CHECK(launched < 1024);
  CHECK(emulated_gpu::blocked_calls() == 0);
}

TEST_CASE("no call of a run blocks, however long its instructions are, and none counts as time to enqueue") {
  const test::Case c = long_case();
  const Program program = c.program();
  const Timeline t = test::on_gpu(c, program, {});
  CHECK(emulated_gpu::blocked_calls() == 0);
  CHECK(emulated_gpu::submitted_work() > 3 * 1024);
  REQUIRE(t.enqueued);
  CHECK(t.enqueued->calls > 1024);
  CHECK(t.enqueued->warning.empty());
}

TEST_CASE("a stuck GPU ends a run with an error, also while an instruction with many launches is enqueued") {
  class Stuck final : public test::QueuedCpu {
   public:
    Stuck(cudaStream_t stream, std::size_t width) : QueuedCpu(stream, width), on_(stream) {}
    void forward(const real::Call& call) override {
      if (++forwards_ == 100) emulated_gpu::hang(on_);
      QueuedCpu::forward(call);
    }

   private:
    cudaStream_t on_;
    int forwards_ = 0;
  };
  const test::Case c = long_case();
  emulated_gpu::reset();
  const auto maker = [](cudaStream_t stream, int, std::size_t width) { return std::make_unique<Stuck>(stream, width); };
  CHECK_THROWS_AS(cuda::run(c.program(), maker, {{}, 0.2}), BackendError);
  CHECK(emulated_gpu::blocked_calls() == 0);
  emulated_gpu::reset();
}

TEST_CASE("budget: eight parts have 22 streams, less than hardware queues; NCCL adds its own") {
  test::Case c;
  c.model = test::deep_net(8, 6, 8, 3);
  c.plan = test::stage_each(c.model, 4);
  c.lowering.rendezvous = true;
  c.lowering.streams = StreamModel::Direction;
  for (const GpuMessages messages : {GpuMessages::Copy, GpuMessages::Nccl}) {
    c.messages = messages;
    const Program program = c.program();
    const Timeline t = test::on_gpu(c, program, {});
    // One for the computation of each device, and one for each direction between the seven pairs of neighbors.
    CHECK(t.enqueued->streams == 8 + 2 * 7);
    CHECK(emulated_gpu::most_streams() <= 8 + 2 * 7);
    // Each direction has a communicator, with its own two streams.
    CHECK(t.enqueued->warning ==
          (messages == GpuMessages::Copy
               ? ""
               : "GPU 0 has 50 streams in 32 hardware queues: work of one stream may wait for another's"));
  }
}

TEST_CASE("with 32 hardware queues for all streams a run has the same numbers") {
  test::Case c;
  c.model = test::deep_net(8, 6, 8, 3);
  c.plan = test::stage_each(c.model, 4);
  const Program program = c.program();
  const Timeline cpu = test::on_cpu(c, program);
  for (emulated_gpu::Machine machine : test::machines(6))
    for (const int connections : {1, 8, 32}) {
      machine.connections = connections;
      const Timeline t = test::on_gpu(c, program, machine);
      CHECK(t.learnt->losses == cpu.learnt->losses);
      CHECK(t.learnt->weights == cpu.learnt->weights);
    }
}

}  // namespace stagecraft::launches_test
