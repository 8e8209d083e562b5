// Whole runs in mixed precision whose attention cuDNN computes, on a GPU and with a cuDNN that are emulated.
#include <cmath>

#include <doctest/doctest.h>

#include "backends/cuda/kernels/kernels.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"

namespace stagecraft::library_attention_runs_test {
namespace {

constexpr int kRows = 12, kHeads = 2, kSamples = 2, kMicroBatches = 4;

/// Two layers of causal attention between projections, and a residual sum around them. Heads are `width` wide.
ModelGraph attending_net(int width) {
  const int columns = kHeads * width;
  const auto op = [&](OperationKind kind, int to, int from_columns, std::vector<int> from) {
    Operation o{.kind = kind, .inputs = std::move(from), .rows = kRows, .columns = to, .inner = from_columns};
    o.heads = kHeads;
    o.causal = true;
    return o;
  };
  ModelGraph model;
  model.name = "attention";
  model.precision = {2, 2, 8, 2};
  model.layers.push_back(
      test::layer_of("input", {}, {{.kind = OperationKind::Input, .rows = kRows, .columns = columns}}, 2));
  for (int l = 0; l < 2; ++l)
    model.layers.push_back(test::layer_of(
        "l" + std::to_string(l), {LayerId{l}},
        {op(OperationKind::Linear, 3 * columns, columns, {-1}), op(OperationKind::Attention, columns, 0, {0}),
         op(OperationKind::Linear, columns, columns, {1})},
        2));
  model.layers.push_back(test::layer_of("loss", {LayerId{2}}, {op(OperationKind::MeanSquare, columns, 0, {-1})}, 2));
  return model;
}

struct AttentionRun {
  Learnt learnt;
  std::int64_t attentions = 0;
};

AttentionRun on_gpu(const test::Case& c, const emulated_gpu::Machine& machine) {
  emulated_gpu::reset(machine);
  cuda::Options options;
  options.copy_kernel = cuda::copy_by_kernel;
  options.fills_new_memory = true;
  options.gpu.graph = c.graph;
  options.gpu.timing = c.timing;
  const auto maker = [](cudaStream_t stream, int multiprocessors, std::size_t width) {
    return cuda::make_kernels({stream, multiprocessors}, width);
  };
  const Timeline timeline = cuda::run(c.program(), maker, options);
  return {*timeline.learnt, emulated_gpu::attentions()};
}

test::Case attending_case(int width, const char* schedule = "1f1b") {
  test::Case c;
  c.schedule = schedule;
  c.model = attending_net(width);
  c.plan = test::stage_each(c.model, kMicroBatches, kSamples);
  return c;
}

}  // namespace

TEST_CASE("runs whose attention cuDNN computes have one result in all orders of streams, with and without graphs") {
  for (const char* schedule : {"1f1b", "gpipe"}) {
    test::Case c = attending_case(8, schedule);
    const AttentionRun first = on_gpu(c, {});
    // Two layers; a warm-up of one iteration, and three; forwards and backwards.
    CHECK(first.attentions >= 2 * 2 * kMicroBatches * 4);
    for (const emulated_gpu::Machine& machine : test::machines(9)) {
      CAPTURE(machine.seed);
      c.graph = machine.seed % 2 == 0;
      c.timing = c.graph ? GpuTiming::Off : GpuTiming::Events;
      const AttentionRun again = on_gpu(c, machine);
      REQUIRE(again.learnt.losses == first.learnt.losses);
      REQUIRE(again.learnt.weights == first.learnt.weights);
    }
    // The losses in 16 bits are nearer to the CPU's than to losses in 32 bits.
    test::Case in_floats = c;
    in_floats.model.precision = {4, 4, 8, 4};
    const std::vector<double> cpu = test::on_cpu(c, c.program()).learnt->losses,
                              floats = test::on_cpu(in_floats, in_floats.program()).learnt->losses;
    REQUIRE(cpu.size() == first.learnt.losses.size());
    double from_cpu = 0, from_floats = 0;
    for (std::size_t i = 0; i < cpu.size(); ++i) {
      from_cpu += std::abs(first.learnt.losses[i] - cpu[i]);
      from_floats += std::abs(floats[i] - cpu[i]);
    }
    CHECK(from_floats > 0);
    CHECK(from_cpu < from_floats / 2);
  }
}

TEST_CASE("attention by cuDNN keeps a float for each row in place of its probabilities, and as the memory says") {
  test::Case c = attending_case(8, "gpipe");
  const AttentionRun library = on_gpu(c, {});
  test::Case without = attending_case(8, "gpipe");
  without.plan = test::stage_each(without.model, kMicroBatches, kSamples + 1);  // Choices are for the whole process.
  const AttentionRun kernels = on_gpu(without, {.refuses_attention = true});
  CHECK(library.attentions > 0);
  CHECK(kernels.attentions == 0);
  // GPipe has all micro-batches in flight. Both kept the same arrays of each sample but for the attention's.
  const double numbers = kHeads * kRows * (kRows - 2.0), bytes = 2;
  const auto each_sample = [](const AttentionRun& run, int samples) {
    return run.learnt.memory[DeviceId{0}].activations.value / samples / kMicroBatches;
  };
  const double saved = each_sample(kernels, kSamples + 1) - each_sample(library, kSamples);
  CHECK(saved == doctest::Approx(numbers * bytes).epsilon(0.1));
}

TEST_CASE("with selective recomputation the statistics are recomputed, and no bit changes") {
  test::Case c = attending_case(8);
  const AttentionRun stashed = on_gpu(c, {});
  for (Stage& stage : c.plan.stages) stage.shape.recomputation = Recomputation::Selective;
  for (const emulated_gpu::Machine& machine : test::machines(3)) {
    const AttentionRun again = on_gpu(c, machine);
    CHECK(again.attentions > stashed.attentions);
    REQUIRE(again.learnt.losses == stashed.learnt.losses);
    REQUIRE(again.learnt.weights == stashed.learnt.weights);
  }
}

}  // namespace stagecraft::library_attention_runs_test
