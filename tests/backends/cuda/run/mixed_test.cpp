// Whole runs in mixed precision, with the kernels for GPUs on a GPU that is emulated.
#include <cmath>

#include <doctest/doctest.h>

#include "backends/cuda/kernels/kernels.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"
#include "tests/support/mixed_programs.hpp"

namespace stagecraft::mixed_runs_on_gpu_test {
namespace {

Program program_of(const test::MixedProgram& p, int iterations) {
  const WeightsRule& rule = test::policy("flush");
  return test::with_workload(test::real_program(p.schedule, p.plan, rule, iterations), p.model, p.plan, rule,
                             p.training);
}

Learnt on_cpu(const test::MixedProgram& p, const Program& program) {
  return test::really_run(program, p.model, p.plan, test::policy("flush"), p.training, true).learnt();
}

Learnt on_gpu(const Program& program, int order, bool graph) {
  emulated_gpu::Machine machine;
  machine.order = static_cast<emulated_gpu::Order>(order % 3);
  machine.seed = static_cast<std::uint64_t>(order) + 1;
  emulated_gpu::reset(machine);
  const auto maker = [](cudaStream_t stream, int multiprocessors, std::size_t width) {
    return cuda::make_kernels({stream, multiprocessors}, width);
  };
  cuda::Options options;
  options.copy_kernel = cuda::copy_by_kernel;
  options.gpu.messages = order % 2 == 0 ? GpuMessages::Copy : GpuMessages::Kernel;
  if (graph) options.gpu.graph = true, options.gpu.timing = GpuTiming::Off;
  options.fills_new_memory = true;
  return *cuda::run(program, maker, options).learnt;
}

}  // namespace

TEST_CASE("100 random programs in whole numbers: rounded to 16 bits on the GPU as on the CPU, to the last bit") {
  Rng rng(6, "mixed programs on a GPU");
  for (int trial = 0; trial < 100; ++trial) {
    const test::MixedProgram p = test::mixed_program(rng, true);
    CAPTURE(trial);
    const Program program = program_of(p, 3);
    const Learnt cpu = on_cpu(p, program), gpu = on_gpu(program, trial, trial % 4 == 3);
    CHECK(gpu.losses == cpu.losses);
    CHECK(gpu.weights == cpu.weights);
  }
}

// Sums in another order round to a neighbor here and there, where 16 bits round every number: losses of the GPU and of
// the CPU are nearer to each other than the CPU's are to losses in 32 bits. The bound of each operation is in
// tests/backends/cuda/kernels/mixed_test.cpp.
TEST_CASE("100 random programs in other numbers: nearer to the CPU's than to 32 bits, equal in all orders of streams") {
  Rng rng(7, "mixed programs on a GPU");
  double from_cpu = 0, from_floats = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const test::MixedProgram p = test::mixed_program(rng, false);
    CAPTURE(trial);
    const Program program = program_of(p, 2);
    test::MixedProgram in_floats = p;
    in_floats.model.precision = {4, 4, 8, 4};
    const Learnt cpu = on_cpu(p, program), floats = on_cpu(in_floats, program_of(in_floats, 2));
    const Learnt gpu = on_gpu(program, trial, false), again = on_gpu(program, trial + 1, false);
    for (std::size_t i = 0; i < cpu.losses.size(); ++i) {
      from_cpu += std::abs(gpu.losses[i] - cpu.losses[i]) / cpu.losses[i];
      from_floats += std::abs(floats.losses[i] - cpu.losses[i]) / cpu.losses[i];
    }
    CHECK(again.losses == gpu.losses);
    CHECK(again.weights == gpu.weights);
  }
  CHECK(from_floats > 0);
  CHECK(from_cpu < from_floats / 2);
}

}  // namespace stagecraft::mixed_runs_on_gpu_test
