// Groups of devices in mixed precision on the emulated GPU, by the kernels of the CPU, which have to give its bits in
// whatever order streams go on, and by those for GPUs.
#include <cmath>

#include <doctest/doctest.h>

#include "backends/cuda/kernels/kernels.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"
#include "tests/backends/real/group_case.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::mixed_groups_on_gpu_test {
namespace {

using test::GroupCase;

constexpr int kIterations = 3;
const GroupCase kCases[] = {
    {.stages = 2, .degrees = {.tensor = 2}},
    {.schedule = "zb-h1", .stages = 2, .degrees = {.tensor = 4, .sequence = true}},
    {.degrees = {.replicas = 2, .tensor = 2, .sequence = true},
     .sharding = StateSharding::Optimizer,
     .recomputation = Recomputation::Full},
    {.degrees = {.replicas = 2, .tensor = 2}, .sharding = StateSharding::Gradients},
    {.degrees = {.replicas = 2}, .sharding = StateSharding::Weights, .reshard = true},
    {.degrees = {.context = 4}, .exchange = ContextExchange::Ring},
    {.degrees = {.context = 2, .tensor = 2, .sequence = true}, .exchange = ContextExchange::AllGather},
    {.degrees = {.context = 2, .tensor = 2}, .exchange = ContextExchange::AllToAll},
};

test::GroupRun on_cpu(GroupCase c, double width) {
  c.micro_batches = 2;
  return test::run_group(test::in_precision(test::decoder_net(1, false, c.stages == 1), width), c,
                         test::training_of(OptimizerKind::Momentum, 1e-2), kIterations);
}

Timeline on_gpu(const Program& program, const emulated_gpu::Machine& machine, bool graph, bool own_kernels) {
  emulated_gpu::reset(machine);
  cuda::Options options;
  options.gpu.timing = graph ? GpuTiming::Off : GpuTiming::Events;
  options.gpu.graph = graph;
  options.fills_new_memory = true;
  options.copy_kernel = own_kernels ? cuda::copy_by_kernel : options.copy_kernel;
  if (!own_kernels) return cuda::run(program, test::queued_cpu, options);
  const auto maker = [](cudaStream_t stream, int multiprocessors, std::size_t width) {
    return cuda::make_kernels({stream, multiprocessors}, width);
  };
  return cuda::run(program, maker, options);
}

}  // namespace

TEST_CASE("groups in mixed precision have the bits of the CPU, in any order of streams, on several GPUs, as graphs") {
  for (const GroupCase& c : kCases) {
    const std::string text = to_text(c);
    CAPTURE(text);
    const test::GroupRun cpu = on_cpu(c, 2);
    for (emulated_gpu::Machine machine : test::machines(test::trials(12, 2))) {
      CAPTURE(machine.seed);
      machine.devices = machine.seed % 2 == 0 ? 2 : 1;
      machine.peer_access = machine.seed % 4 != 0;
      const bool graph = machine.seed % 3 == 2;
      const Timeline gpu = on_gpu(cpu.program, machine, graph, false);
      REQUIRE(gpu.learnt->losses == cpu.learnt().losses);
      REQUIRE(gpu.learnt->weights == cpu.learnt().weights);
      if (graph) CHECK(gpu.enqueued->launches == kIterations - 1);
    }
  }
}

// Sums in another order round to a neighbor here and there, where 16 bits round every number.
TEST_CASE(
    "by the kernels for GPUs groups are nearer to the CPU's than to 32 bits, and equal in all orders of streams") {
  double from_cpu = 0, from_floats = 0;
  for (const GroupCase& c : kCases) {
    const std::string text = to_text(c);
    CAPTURE(text);
    const test::GroupRun cpu = on_cpu(c, 2), floats = on_cpu(c, 4);
    const std::vector<emulated_gpu::Machine> machines = test::machines(2);
    const Learnt gpu = *on_gpu(cpu.program, machines[0], false, true).learnt;
    const Learnt again = *on_gpu(cpu.program, machines[1], true, true).learnt;
    const double loss = cpu.learnt().losses.front();
    from_cpu += std::abs(gpu.losses.front() - loss) / loss;
    from_floats += std::abs(floats.learnt().losses.front() - loss) / loss;
    CHECK(again.losses == gpu.losses);
    CHECK(again.weights == gpu.weights);
  }
  CAPTURE(from_cpu);
  CAPTURE(from_floats);
  CHECK(from_floats > 0);
  CHECK(from_cpu < from_floats / 2);
}

TEST_CASE("cuDNN computes the heads of each device of a tensor group") {
  DecoderShape shape = test::decoder_shape(1, false);
  shape.hidden = 32, shape.heads = shape.key_value_heads = 4, shape.head_width = 8;  // cuDNN wants multiples of eight.
  const GroupCase c{.degrees = {.tensor = 2, .sequence = true}};
  const auto learn = [&](double width) {
    return test::run_group(test::in_precision(test::decoder_of(shape, "gpt"), width), c,
                           test::training_of(OptimizerKind::Momentum, 1e-2), kIterations);
  };
  const test::GroupRun cpu = learn(2), floats = learn(4);
  const Learnt gpu = *on_gpu(cpu.program, {}, false, true).learnt;
  // A forward and a backward of each micro-batch on two devices, and in the warm-up.
  CHECK(emulated_gpu::attentions() >= 2 * 2 * c.micro_batches * (kIterations + 1));
  const double loss = cpu.learnt().losses.front();
  CHECK(std::abs(gpu.losses.front() - loss) < std::abs(floats.learnt().losses.front() - loss));
}

}  // namespace stagecraft::mixed_groups_on_gpu_test
