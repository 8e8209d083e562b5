// Iterations as graphs, and without events around instructions: the same bits, in whatever order streams go on.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/backends/cuda/run/gpu_case.hpp"

namespace stagecraft::graphs_test {

namespace {

test::Case graph_case(const std::string& schedule = "1f1b", int depth = 4) {
  test::Case c;
  c.schedule = schedule;
  c.model = test::deep_net(depth, 6, 8, 3);
  c.plan = test::stage_each(c.model, 5);
  c.iterations = 5;
  c.timing = GpuTiming::Off;
  c.graph = true;
  return c;
}

/// Requires the CPU's bits for `orders` orders of streams; returns the last timeline.
Timeline compare(const test::Case& c, int orders = 3) {
  CAPTURE(c.schedule);
  CAPTURE(c.policy);
  const Program program = c.program();
  const Timeline cpu = test::on_cpu(c, program);
  Timeline last;
  for (const emulated_gpu::Machine& machine : test::machines(orders)) {
    CAPTURE(machine.seed);
    last = test::on_gpu(c, program, machine);
    REQUIRE(last.learnt->losses == cpu.learnt->losses);
    REQUIRE(last.learnt->weights == cpu.learnt->weights);
    REQUIRE(last.learnt->versions == cpu.learnt->versions);
    CHECK(emulated_gpu::device_bytes() == 0);
  }
  return last;
}

}  // namespace

TEST_CASE("iterations that repeat are graphs, all but the first, made before the clock runs") {
  for (const OptimizerKind kind : {OptimizerKind::Sgd, OptimizerKind::Momentum, OptimizerKind::Adam})
    for (const char* schedule : {"gpipe", "1f1b", "graph"}) {
      test::Case c = graph_case(schedule);
      c.training.optimizer.kind = kind;
      const Timeline t = compare(c);
      CHECK(t.enqueued->no_graph == "");
      CHECK(t.enqueued->launches == c.iterations - 1);
      CHECK(t.enqueued->graphs == 0);
      CHECK(t.enqueued->by_graph.value > 0);
      CHECK(t.enqueued->by_calls.value > 0);
    }
}

namespace {

/// In these iterations the update of device 0 waits for that of device 3, too.
void add_waits(Program& p, int first, int last) {
  std::vector<InstructionId> waits;
  std::vector<std::uint32_t> first_wait{0};
  InstructionId other;
  for (const InstructionId id : p.instructions.ids()) {
    const Instruction& i = p.at(id);
    for (const InstructionId w : p.waits_for(id)) waits.push_back(w);
    if (i.kind == InstructionKind::Update) {
      const int iteration = p.iteration_of(i);
      if (i.device == DeviceId{3}) other = id;
      if (i.device == DeviceId{0} && first <= iteration && iteration <= last) {
        REQUIRE(p.iteration_of(p.at(other)) == iteration);
        waits.push_back(other);
      }
    }
    first_wait.push_back(static_cast<std::uint32_t>(waits.size()));
  }
  p.waits = waits;
  p.first_wait = first_wait;
}

}  // namespace

TEST_CASE("iterations that can only repeat are launched without recording them, all but every sixteenth") {
  for (const OptimizerKind kind : {OptimizerKind::Sgd, OptimizerKind::Adam})
    for (const char* schedule : {"1f1b", "interleaved"}) {
      test::Case c = graph_case(schedule, 8);
      if (c.schedule == "interleaved")
        for (std::size_t s = 0; s < 8; ++s) c.plan.stages[StageId{s}].place_on({DeviceId{s % 4}});
      c.training.optimizer.kind = kind;
      c.iterations = 36;
      const Timeline t = compare(c, 2);
      CHECK(t.enqueued->launches == 35);
      CHECK(t.enqueued->recorded == 5);  // 1 and 2, which show that they repeat, 16, 32, and the last.
    }
}

TEST_CASE("where instructions change, iterations are recorded again") {
  test::Case c = graph_case();
  c.iterations = 24;
  Program program = c.program();
  add_waits(program, 9, 12);
  const Timeline cpu = test::on_cpu(c, program), gpu = test::on_gpu(c, program, {});
  CHECK(gpu.learnt->losses == cpu.learnt->losses);
  CHECK(gpu.learnt->weights == cpu.learnt->weights);
  CHECK(gpu.learnt->versions == cpu.learnt->versions);
  CHECK(gpu.enqueued->launches == 23);
  CHECK(gpu.enqueued->graphs == 1);  // The changed iterations; the others were there before the clock ran.
  // Series of 1 to 8, 9 to 12 and 13 to 23: the first two and the last of each, and 16.
  CHECK(gpu.enqueued->recorded == 3 + 3 + 4);
}

TEST_CASE("iterations whose updates stay outside, or that keep gradients of micro-batches apart, are all recorded") {
  test::Case c = graph_case();
  c.iterations = 12;
  c.training.evaluate_every = 3;
  const Timeline apart = compare(c, 1);
  CHECK(apart.enqueued->launches == 11);
  CHECK(apart.enqueued->recorded == 11);
  c.training.evaluate_every = 0;
  c.training.slots = true;
  const Timeline slots = compare(c, 1);
  CHECK(slots.enqueued->launches == 11);
  CHECK(slots.enqueued->recorded == 11);
}

TEST_CASE("graphs with replicas, recomputation, several stages on a device, however messages go") {
  test::Case c = graph_case();
  for (Stage& stage : c.plan.stages) stage.shape.recomputation = Recomputation::Full;
  for (const bool overlap : {true, false})
    for (const bool rendezvous : {true, false}) {
      c.lowering.overlap = overlap;
      c.lowering.rendezvous = rendezvous;
      for (const GpuMessages messages : {GpuMessages::Copy, GpuMessages::Nccl}) {
        c.messages = messages;
        CHECK(compare(c, 3).enqueued->launches == 4);
      }
    }
  c = graph_case("1f1b", 3);
  c.plan = test::stage_each(c.model, 4, 4);
  c.plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{3}});
  CHECK(compare(c).enqueued->launches == 4);
  c = graph_case("interleaved", 8);
  c.plan = test::stage_each(c.model, 8);
  for (std::size_t s = 0; s < 8; ++s) c.plan.stages[StageId{s}].place_on({DeviceId{s % 4}});
  c.training.optimizer.kind = OptimizerKind::Momentum;
  CHECK(compare(c, 3).enqueued->launches == 4);
}

TEST_CASE("graphs over several GPUs, whose memory is copied from one to the other") {
  test::Case c = graph_case();
  const Program program = c.program();
  const Timeline cpu = test::on_cpu(c, program);
  for (emulated_gpu::Machine machine : test::machines(2)) {
    machine.devices = 4;
    const Timeline gpu = test::on_gpu(c, program, machine);
    CHECK(gpu.learnt->weights == cpu.learnt->weights);
    CHECK(gpu.enqueued->launches == 4);
  }
  c.messages = GpuMessages::Nccl;
  emulated_gpu::Machine several;
  several.devices = 4;
  const Timeline gpu = test::on_gpu(c, program, several);
  CHECK(gpu.learnt->weights == cpu.learnt->weights);
  CHECK(gpu.enqueued->launches == 0);
  CHECK(gpu.enqueued->no_graph == "a graph with NCCL is on one GPU, and a process has several");
}

TEST_CASE("evaluations happen between graphs") {
  test::Case c = graph_case();
  c.training.evaluate_every = 2;
  const Program program = c.program();
  const Timeline cpu = test::on_cpu(c, program), gpu = test::on_gpu(c, program, {});
  CHECK(gpu.enqueued->launches == 4);
  REQUIRE(gpu.learnt->evaluations.size() == cpu.learnt->evaluations.size());
  REQUIRE(gpu.learnt->evaluations.size() == 3);
  for (std::size_t i = 0; i < cpu.learnt->evaluations.size(); ++i)
    CHECK(gpu.learnt->evaluations[i].loss == cpu.learnt->evaluations[i].loss);
}

TEST_CASE("where there can be no graph it goes on without, and says why") {
  test::Case c = graph_case("pipedream");
  c.policy = "stash";
  c.training.optimizer.kind = OptimizerKind::Momentum;
  const Timeline overlapping = compare(c, 3);
  CHECK(overlapping.enqueued->launches == 0);
  CHECK(overlapping.enqueued->no_graph == "an iteration begins before the one before it has ended");
  c = graph_case();
  c.iterations = 1;
  CHECK(compare(c, 1).enqueued->no_graph == "there is one iteration only");
  c = graph_case("interleaved", 8);
  c.plan = test::stage_each(c.model, 8);
  for (std::size_t s = 0; s < 8; ++s) c.plan.stages[StageId{s}].place_on({DeviceId{s % 4}});
  c.training.evaluate_every = 2;
  const Timeline looks = compare(c, 1);
  CHECK(looks.enqueued->no_graph == "evaluations look at weights after updates that are in the middle of an iteration");
}

TEST_CASE("Adam's steps are counted on the device: also where updates are in the middle, and in floats") {
  for (const OptimizerKind kind : {OptimizerKind::Adam, OptimizerKind::AdamW})
    for (const double width : {8.0, 4.0}) {
      test::Case c = graph_case("interleaved");
      c.model = test::deep_net(8, 6, 8, 3, OperationKind::Tanh, OperationKind::MeanSquare, width);
      c.plan = test::stage_each(c.model, 8);
      for (std::size_t s = 0; s < 8; ++s) c.plan.stages[StageId{s}].place_on({DeviceId{s % 4}});
      c.training = test::training_of(kind, 0.01, "teacher");
      c.training.optimizer.weight_decay = 0.1;
      c.iterations = 9;
      for (const bool warm_up : {true, false}) {
        c.warm_up = warm_up;
        const Timeline t = compare(c, 3);
        CHECK(t.enqueued->launches == 8);
        CHECK((t.enqueued->graphs == 0) == warm_up);
      }
    }
}

namespace {

/// Takes memory whenever it computes, as the first product of its shape does: while one captures that is refused.
class TakesMemory final : public test::QueuedCpu {
 public:
  TakesMemory(cudaStream_t stream, std::size_t width) : QueuedCpu(stream, width) {}
  void forward(const real::Call& call) override {
    void* data = nullptr;
    if (cudaMalloc(&data, 1) != cudaSuccess) throw BackendError("no memory for a block");
    cudaFree(data);
    QueuedCpu::forward(call);
  }
};

}  // namespace

TEST_CASE("memory that cannot be taken in the middle of a capture costs the graph, not the run") {
  const test::Case c = graph_case();
  const Program program = c.program();
  const Timeline cpu = test::on_cpu(c, program);
  emulated_gpu::reset({});
  cuda::Options options;
  options.gpu.timing = c.timing;
  options.gpu.graph = true;
  const auto maker = [](cudaStream_t stream, int, std::size_t width) -> std::unique_ptr<real::Kernels> {
    return std::make_unique<TakesMemory>(stream, width);
  };
  const Timeline gpu = cuda::run(program, maker, options);
  CHECK(gpu.learnt->weights == cpu.learnt->weights);
  CHECK(gpu.enqueued->launches == 0);
  CHECK(gpu.enqueued->no_graph == "an iteration could not be captured: no memory for a block");
}

TEST_CASE("a graph that was not made beforehand is made while the clock runs, and counted") {
  test::Case c = graph_case();
  c.warm_up = false;
  const Timeline t = compare(c);
  CHECK(t.enqueued->graphs >= 1);
  CHECK(t.enqueued->launches == 4);
}

TEST_CASE("without events around instructions: the same numbers, and the times of iterations") {
  for (const bool graph : {false, true})
    for (const char* schedule : {"1f1b", "pipedream"}) {
      test::Case c = graph_case(schedule);
      if (c.schedule == "pipedream") c.policy = "stash";
      c.graph = graph;
      const Timeline t = compare(c, 6);
      CHECK(!t.instruction_times);
      const Program program = c.program();
      std::vector<double> ends(5, 0);
      for (const InstructionId n : program.instructions.ids()) {
        double& end = ends[program.iteration_of(program.instructions[n])];
        CHECK(t.end[n] > t.start[n]);
        CHECK((end == 0 || end == t.end[n]));
        end = t.end[n];
      }
      CHECK(std::is_sorted(ends.begin(), ends.end()));
    }
}

TEST_CASE("iterations take as long without events as with them, to an emulated microsecond for each of those") {
  test::Case c = graph_case();
  c.graph = false;
  const Program program = c.program();
  const double off = test::on_gpu(c, program, {}).last_end().value;
  c.timing = GpuTiming::Events;
  const double with = test::on_gpu(c, program, {}).last_end().value;
  CHECK(off <= with);
  CHECK(with - off <= 3e-6 * static_cast<double>(program.size()));
}

}  // namespace stagecraft::graphs_test
