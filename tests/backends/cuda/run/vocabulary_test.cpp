// A vocabulary that all ranks of a pipeline divide on the emulated GPU, by the kernels of the CPU, which have to give
// its bits in whatever order streams go on, and by those for GPUs.
#include <doctest/doctest.h>

#include "backends/cuda/kernels/kernels.hpp"
#include "sim/plan/vocabulary.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"
#include "tests/backends/real/group_case.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::vocabulary_on_gpu_test {
namespace {

using test::GroupCase;

constexpr int kIterations = 3;
const GroupCase kCases[] = {
    {.schedule = "vocab-1", .stages = 3},
    {.schedule = "vocab-2", .stages = 3, .recomputation = Recomputation::Full},
    {.schedule = "interlaced", .stages = 2, .degrees = {.replicas = 2}},
    {.schedule = "vocab-2", .stages = 2, .degrees = {.tensor = 2, .sequence = true}},
    {.schedule = "vocab-1", .stages = 2, .degrees = {.context = 2, .tensor = 2}},
    {.schedule = "vocab-1", .stages = 2, .degrees = {.replicas = 2}, .sharding = StateSharding::Gradients},
    {.schedule = "vocab-2", .stages = 2, .degrees = {.replicas = 2}, .sharding = StateSharding::Weights},
};

Program program_of(const GroupCase& c, bool tied, double width = 8) {
  const ModelGraph model = test::in_precision(test::decoder_net(3, false, tied), width);
  Plan plan = test::plan_of(model, c);
  divide_vocabulary(plan, model);
  const WeightsRule& rule = test::policy("flush");
  return unfold(test::with_workload(test::real_program(c.schedule, plan, rule, kIterations, nullptr, c.lowering), model,
                                    plan, rule, test::training_of(OptimizerKind::Momentum, 1e-2)),
                plan)
      .program;
}

Learnt on_cpu(const Program& program) { return *real::execute(program, cpu::make_kernels, {}).learnt; }

Timeline on_gpu(const Program& program, const emulated_gpu::Machine& machine, bool graph, bool by_gpu) {
  emulated_gpu::reset(machine);
  cuda::Options options;
  options.gpu.timing = graph ? GpuTiming::Off : GpuTiming::Events;
  options.gpu.graph = graph;
  options.fills_new_memory = true;
  if (!by_gpu) return cuda::run(program, test::queued_cpu, options);
  options.copy_kernel = cuda::copy_by_kernel;
  const auto maker = [](cudaStream_t stream, int multiprocessors, std::size_t width) {
    return cuda::make_kernels({stream, multiprocessors}, width);
  };
  return cuda::run(program, maker, options);
}

}  // namespace

TEST_CASE("a divided vocabulary has the bits of the CPU, in any order of streams, on several GPUs, as graphs") {
  for (const GroupCase& c : kCases)
    for (const bool tied : {false, true}) {
      const std::string text = to_text(c);
      CAPTURE(text);
      CAPTURE(tied);
      const Program program = program_of(c, tied);
      const Learnt expected = on_cpu(program);
      for (emulated_gpu::Machine machine : test::machines(test::trials(12, 3))) {
        CAPTURE(machine.seed);
        machine.devices = machine.seed % 2 == 0 ? 2 : 1;
        const bool graph = machine.seed % 3 == 2;
        const Timeline gpu = on_gpu(program, machine, graph, false);
        CHECK(gpu.learnt->losses == expected.losses);
        CHECK(gpu.learnt->weights == expected.weights);
        if (graph) CHECK(gpu.enqueued->launches == kIterations - 1);
      }
    }
}

// Kernels for GPUs sum in another order.
TEST_CASE("by the kernels for GPUs a divided vocabulary learns what it learns on the CPU, up to rounding") {
  for (const GroupCase& c : kCases) {
    const std::string text = to_text(c);
    CAPTURE(text);
    const Program program = program_of(c, false);
    const Learnt expected = on_cpu(program), gpu = *on_gpu(program, {}, false, true).learnt;
    CHECK(test::relative_difference(gpu.losses, expected.losses) < 1e-12);
    CHECK(test::relative_difference(test::all_weights(gpu.weights), test::all_weights(expected.weights)) < 1e-12);
  }
}

TEST_CASE("ranks on GPUs that do not read each other's memory are refused") {
  const emulated_gpu::Machine apart{.devices = 2, .peer_access = false};
  CHECK_THROWS_WITH_AS(on_gpu(program_of(kCases[0], false), apart, false, false),
                       doctest::Contains("do not read each other's memory"), InputError);
}

}  // namespace stagecraft::vocabulary_on_gpu_test
