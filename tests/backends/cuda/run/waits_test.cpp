// What keeps a run right, taken away: the emulated GPU has to notice.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/core/diagnostic.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"

namespace stagecraft::waits_test {

namespace {

test::Case small_case() {
  test::Case c;
  c.model = test::deep_net(4, 6, 8, 3);
  c.plan = test::stage_each(c.model, 4);
  return c;
}

/// Something happens before its seventh forward operation.
class Disturbed final : public test::QueuedCpu {
 public:
  Disturbed(cudaStream_t stream, std::size_t width, void (*disturb)(cudaStream_t))
      : QueuedCpu(stream, width), on_(stream), disturb_(disturb) {}
  void forward(const real::Call& call) override {
    if (++forwards_ == 7) disturb_(on_);
    QueuedCpu::forward(call);
  }

 private:
  cudaStream_t on_;
  void (*disturb_)(cudaStream_t);
  int forwards_ = 0;
};

void run_disturbed(const test::Case& c, void (*disturb)(cudaStream_t)) {
  emulated_gpu::reset();
  const auto maker = [disturb](cudaStream_t stream, int, std::size_t width) {
    return std::make_unique<Disturbed>(stream, width, disturb);
  };
  cuda::run(c.program(), maker, {{}, 0.2});
}

/// Notes how many blocks of memory had been taken at each of its forward operations.
std::vector<std::int64_t> taken_blocks;
class Noting final : public test::QueuedCpu {
 public:
  using QueuedCpu::QueuedCpu;
  void forward(const real::Call& call) override {
    taken_blocks.push_back(emulated_gpu::blocks());
    QueuedCpu::forward(call);
  }
};

/// Whether any order shows a difference, or something worse.
bool noticed(const test::Case& c, const Program& program, const Timeline& expected, std::int64_t ignored) {
  for (emulated_gpu::Machine machine : test::machines(30)) {
    machine.ignored_wait = ignored;
    try {
      const Timeline t = test::on_gpu(c, program, machine);
      if (t.learnt->losses != expected.learnt->losses || t.learnt->weights != expected.learnt->weights) return true;
    } catch (const Infeasible&) {  // NaNs.
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("a wait that is left out makes other numbers, whichever it is") {
  test::Case c = small_case();
  c.warm_up = false;  // Its numbers are dropped.
  const Program program = c.program();
  const Timeline expected = test::on_cpu(c, program);
  test::on_gpu(c, program, {});
  const std::int64_t waits = emulated_gpu::waits();
  CAPTURE(waits);
  REQUIRE(waits > 30);
  int detected = 0, tried = 0;
  for (std::int64_t w = 3; w < waits; w += waits / 15) {
    ++tried;
    detected += noticed(c, program, expected, w);
  }
  CAPTURE(tried);
  // Others only keep messages of a stream in order, or memory apart that no order here uses at the same time.
  CHECK(2 * detected >= tried);
}

TEST_CASE("times come from events: instructions follow what they wait for, and devices overlap") {
  const test::Case c = small_case();
  const Program program = c.program();
  const Timeline t = test::on_gpu(c, program, {});
  CHECK(t.clock == Clock::Device);
  for (const InstructionId n : program.instructions.ids()) {
    CHECK(t.end[n] >= t.start[n]);
    CHECK(t.start[n] >= 0);
    for (const InstructionId w : program.waits_for(n))
      if (program.instructions[n].kind != InstructionKind::Receive || program.rendezvous)
        CHECK(t.start[n] >= t.end[w] - 1e-7);
  }
  double busy = 0;
  for (const InstructionId n : program.instructions.ids())
    if (program.instructions[n].is_compute()) busy += t.end[n] - t.start[n];
  CHECK(t.last_end().value < 0.9 * busy);
}

TEST_CASE("memory at its worst is what the CPU measures, but for the losses that are looked at later") {
  const test::Case c = small_case();
  const Program program = c.program();
  const Timeline cpu = test::on_cpu(c, program), gpu = test::on_gpu(c, program, {});
  for (const DeviceId d : cpu.learnt->memory.ids()) {
    const MeasuredMemory &a = cpu.learnt->memory[d], &b = gpu.learnt->memory[d];
    CHECK(a.weights == b.weights);
    CHECK(a.gradients == b.gradients);
    CHECK(a.optimizer == b.optimizer);
    const double losses = d.value == 3 ? 8.0 * 4 * c.iterations : 0;
    CHECK(b.activations.value >= a.activations.value);
    CHECK(b.activations.value <= a.activations.value + losses);
  }
  CHECK(emulated_gpu::device_bytes() == 0);
}

TEST_CASE("GPUs: partitions, a whole one for each device, or one that is not divided") {
  const test::Case c = small_case();
  const Program program = c.program();
  const Timeline cpu = test::on_cpu(c, program);
  emulated_gpu::Machine several, undivided, small, without_events;
  several.devices = 4;
  undivided.green_contexts = false;
  without_events.events_of_partitions = false;
  small.multiprocessors = 20;  // Two groups for four devices.
  const auto machine_of = [&](const emulated_gpu::Machine& m) {
    const Timeline t = test::on_gpu(c, program, m);
    CHECK(t.learnt->weights == cpu.learnt->weights);
    return t.provenance.machine;
  };
  CHECK(machine_of({}) == "4 partitions of 32 of the 132 multiprocessors of Emulated GPU");
  CHECK(machine_of(several) == "4 x Emulated GPU");
  const std::string shared = "4 devices that share Emulated GPU undivided ";
  CHECK(machine_of(undivided) == shared + "(the driver has no cuDeviceGetDevResource)");
  CHECK(machine_of(without_events) ==
        shared + "(cudaEventRecord: invalid resource handle (cudaErrorInvalidResourceHandle))");
  CHECK(machine_of(small) == shared + "(more shares than groups of multiprocessors)");
}

TEST_CASE("a device that is too small says how much it lacked") {
  const test::Case c = small_case();
  emulated_gpu::Machine m;
  m.memory = 1000;
  CHECK_THROWS_WITH_AS(test::on_gpu(c, c.program(), m), doctest::Contains("more, of which the GPU has no more than"),
                       Infeasible);
}

TEST_CASE("a device that is too small while its streams hang: nothing waits without end") {
  test::Case c = small_case();
  c.plan = test::stage_each(c.model, 4, 20000);
  emulated_gpu::Machine m;
  m.memory = 12U << 20U;  // For the weights of all devices, whose streams hang by then, and not for the samples.
  emulated_gpu::reset(m);
  const auto maker = [](cudaStream_t stream, int, std::size_t width) {
    emulated_gpu::hang(stream);
    return std::make_unique<test::QueuedCpu>(stream, width);
  };
  CHECK_THROWS_AS(cuda::run(c.program(), maker, {{}, 0.2}), Infeasible);
}

TEST_CASE("a GPU that hangs: what did not end is named, and nothing waits without end") {
  test::Case c = small_case();
  CHECK_THROWS_WITH_AS(run_disturbed(c, emulated_gpu::hang), doctest::Contains("the GPU is stuck"), BackendError);
  c.training.evaluate_every = 1;  // Weights are looked at while the program is enqueued.
  CHECK_THROWS_WITH_AS(run_disturbed(c, emulated_gpu::hang), doctest::Contains("the GPU is stuck"), BackendError);
}

TEST_CASE("a kernel that crashes: the words of the device") {
  CHECK_THROWS_WITH_AS(run_disturbed(small_case(), emulated_gpu::crash),
                       doctest::Contains("an illegal memory access was encountered"), cuda::CudaError);
}

TEST_CASE("memory is taken while the first iteration is run beforehand, and none while the clock runs") {
  test::Case c;
  c.model = test::deep_net(4, 6, 8, 3);
  c.plan = test::stage_each(c.model, 4, 20000);  // Larger than the first block of memory.
  const auto maker = [](cudaStream_t stream, int, std::size_t width) {
    return std::make_unique<Noting>(stream, width);
  };
  const auto blocks_taken = [&](bool warm_up) {
    emulated_gpu::reset();
    taken_blocks.clear();
    cuda::Options options;
    options.warm_up = warm_up;
    cuda::run(c.program(), maker, options);
    return taken_blocks;
  };
  const std::vector<std::int64_t> cold = blocks_taken(false), warm = blocks_taken(true);
  CHECK(cold.front() < cold.back());
  REQUIRE(warm.size() == cold.size() + cold.size() / static_cast<std::size_t>(c.iterations));
  CHECK(warm[cold.size() / static_cast<std::size_t>(c.iterations)] == warm.back());
}

TEST_CASE("numbers beyond all bounds are noticed at the end") {
  test::Case c = small_case();
  c.training = test::training_of(OptimizerKind::Sgd, 1e200, "teacher");
  const Program program = c.program();
  CHECK_THROWS_WITH_AS(test::on_gpu(c, program, {}), doctest::Contains("the loss is not a finite number"), Infeasible);
}

}  // namespace stagecraft::waits_test
