// How much work streams hold, and how many streams there are.
#include <doctest/doctest.h>

#include "backends/cuda/launch_limit.hpp"
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

TEST_CASE("a call into a full queue blocks, and the limit waits before that") {
  emulated_gpu::reset();
  const cudaStream_t stream = new_stream();
  for (int n = 0; n < 3000; ++n) launch(stream);
  CHECK(emulated_gpu::blocked_calls() == 3000 - 1024);  // Each call after the queue is full.

  for (const int streams : {1, 32, 33, 64}) {
    emulated_gpu::reset();
    cuda::LaunchLimit limit;
    const cuda::LimitedLaunches limited(&limit);
    limit.share_queues(streams);
    const cudaStream_t metered_stream = new_stream();
    for (int n = 0; n < 3000; ++n) launch(metered_stream);
    CHECK(limit.calls() == 3000);
    CHECK(emulated_gpu::blocked_calls() == 0);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    limit.forget();
  }
}

TEST_CASE("streams that share a hardware queue share its entries") {
  for (const bool shared : {false, true}) {
    emulated_gpu::Machine machine;
    machine.queue = cuda::LaunchLimit::kQueue / 2;  // As much as each of two streams has of one queue.
    emulated_gpu::reset(machine);
    cuda::LaunchLimit limit;
    const cuda::LimitedLaunches limited(&limit);
    if (shared) limit.share_queues(64);
    const cudaStream_t stream = new_stream();
    for (int n = 0; n < 3000; ++n) launch(stream);
    CHECK((emulated_gpu::blocked_calls() == 0) == shared);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    limit.forget();
  }
}

TEST_CASE("a GPU that is stuck is noticed while its queue fills") {
  emulated_gpu::reset();
  const cudaStream_t stream = new_stream();
  emulated_gpu::hang(stream);
  cuda::LaunchLimit limit;
  const cuda::LimitedLaunches limited(&limit);
  limit.wait_by(cuda::at_most(0.05));
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

TEST_CASE("events are used again, so a long run makes no more of them than the work in flight needs") {
  struct Timing {
    const char* schedule;
    GpuTiming timing;
    bool graph;
  };
  for (const Timing& timing : {Timing{"1f1b", GpuTiming::Events, false}, Timing{"1f1b", GpuTiming::Off, false},
                               Timing{"1f1b", GpuTiming::Off, true}, Timing{"pipedream", GpuTiming::Events, false}}) {
    CAPTURE(timing.schedule);
    CAPTURE(timing.graph);
    test::Case c;
    c.schedule = timing.schedule;
    c.policy = c.schedule == "1f1b" ? "flush" : "stash";
    c.timing = timing.timing;
    c.graph = timing.graph;
    c.model = test::deep_net(4, 6, 8, 3);
    c.plan = test::stage_each(c.model, 5);
    c.iterations = 80;
    const Program program = c.program();
    const Timeline cpu = test::on_cpu(c, program), gpu = test::on_gpu(c, program, {});
    CHECK(gpu.learnt->weights == cpu.learnt->weights);
    // Each queue holds 64 instructions and one that is added, with two events each. Events of two more iterations may
    // wait until all of the iteration is over. A fresh event for each end of an instruction makes 2,704 to 11,916.
    const std::size_t in_flight = 65 * static_cast<std::size_t>(gpu.enqueued->streams);
    CHECK(emulated_gpu::events_made() <= static_cast<std::int64_t>(2 * in_flight + 4 * program.size() / 80));
  }
}

TEST_CASE("a stream does not wait for work that is known to be over, whose event is recorded for other work") {
  emulated_gpu::reset();
  const cudaStream_t first = new_stream(), second = new_stream();
  cuda::Queues queues;
  queues.add(first, 0);
  queues.add(second, 0);
  const cuda::Event event;
  launch(first);
  const cuda::Point point = queues.end(0, event);
  REQUIRE(cudaStreamSynchronize(first) == cudaSuccess);
  queues.set_over(point);
  emulated_gpu::hang(first);
  event.record(first);
  queues.wait(1, point);
  CHECK(cudaStreamSynchronize(second) == cudaSuccess);
  CHECK(queues.reached(1)[0] == point.number);
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
