// Whole runs whose products cuBLASLt computes together with the GELU next to them, on a GPU that is emulated.
#include <doctest/doctest.h>

#include "backends/cuda/kernels/kernels.hpp"
#include "backends/real/stage_net.hpp"
#include "tests/backends/cuda/run/gpu_case.hpp"

namespace stagecraft::gelu_runs_test {
namespace {

constexpr int kWidth = 16, kInner = 32, kMicroBatches = 4;

/// Layers of a product, a GELU and a product. `residual` adds the layer's input to its output.
ModelGraph gelu_net(int layers, bool residual, double width) {
  const auto op = [](OperationKind kind, int columns, int inner, std::vector<int> from) {
    return Operation{.kind = kind, .inputs = std::move(from), .columns = columns, .inner = inner};
  };
  ModelGraph model;
  model.name = "gelu";
  model.precision = {width, width, 2 * width, width};
  model.layers.push_back(test::layer_of("input", {}, {op(OperationKind::Input, kWidth, 0, {})}, width));
  for (int l = 0; l < layers; ++l) {
    std::vector<Operation> ops{op(OperationKind::Linear, kInner, kWidth, {-1}), op(OperationKind::Gelu, kInner, 0, {0}),
                               op(OperationKind::Linear, kWidth, kInner, {1})};
    if (residual) ops.push_back(op(OperationKind::Add, kWidth, 0, {-1, 2}));
    model.layers.push_back(test::layer_of("l" + std::to_string(l), {LayerId{l}}, std::move(ops), width));
  }
  model.layers.push_back(
      test::layer_of("loss", {LayerId{layers}}, {op(OperationKind::MeanSquare, kWidth, 0, {-1})}, width));
  return model;
}

struct GeluRun {
  Learnt learnt;
  std::int64_t fused = 0;
};

GeluRun on_gpu(const test::Case& c, const emulated_gpu::Machine& machine, cuda::Precision precision) {
  emulated_gpu::reset(machine);
  cuda::Options options;
  options.copy_kernel = cuda::copy_by_kernel;
  options.fills_new_memory = true;
  options.gpu.graph = c.graph;
  options.gpu.timing = c.timing;
  const auto maker = [precision](cudaStream_t stream, int multiprocessors, std::size_t width) {
    return cuda::make_kernels({stream, multiprocessors, precision}, width);
  };
  const Timeline timeline = cuda::run(c.program(), maker, options);
  return {*timeline.learnt, emulated_gpu::fused_gelus()};
}

}  // namespace

TEST_CASE("runs that compute a GELU in products have one result in all orders of streams, and the memory of others") {
  for (const double width : {2.0, 4.0})
    for (const char* schedule : {"1f1b", "zb-h1"}) {
      test::Case c;
      c.schedule = schedule;
      c.model = gelu_net(2, true, width);
      c.plan = test::stage_each(c.model, kMicroBatches, 2);
      const GeluRun first = on_gpu(c, {}, cuda::Precision::Tf32);
      // Two layers; a warm-up and three iterations; a forward and a backward.
      CHECK(first.fused >= 2 * 2 * kMicroBatches * 4);
      const GeluRun apart = on_gpu(c, {.refuses_gelu = true}, cuda::Precision::Tf32);
      CHECK(apart.fused == 0);
      for (const DeviceId d : apart.learnt.memory.ids())
        CHECK(first.learnt.memory[d].activations.value == apart.learnt.memory[d].activations.value);
      for (std::size_t i = 0; i < apart.learnt.losses.size(); ++i)
        CHECK(first.learnt.losses[i] == doctest::Approx(apart.learnt.losses[i]).epsilon(width == 2 ? 0x1p-7 : 1e-5));
      for (const emulated_gpu::Machine& machine : test::machines(6)) {
        c.graph = machine.seed % 2 == 0;
        c.timing = c.graph ? GpuTiming::Off : GpuTiming::Events;
        const GeluRun again = on_gpu(c, machine, cuda::Precision::Tf32);
        REQUIRE(again.learnt.losses == first.learnt.losses);
        REQUIRE(again.learnt.weights == first.learnt.weights);
      }
    }
}

TEST_CASE("in exact precision no product computes a GELU") {
  test::Case c;
  c.model = gelu_net(2, false, 4);
  c.plan = test::stage_each(c.model, kMicroBatches, 2);
  CHECK(on_gpu(c, {}, cuda::Precision::Exact).fused == 0);
}

TEST_CASE("a product and a GELU are a pair only if nothing else reads the numbers between them") {
  const auto pairs = [](const ModelGraph& model) {
    test::Case c;
    c.model = model;
    c.plan = test::stage_each(c.model, kMicroBatches, 2);
    const Program program = c.program();
    int feeds = 0, reads = 0;
    for (const StageId stage : program.workload->stages.ids())
      for (const real::Node& node : real::compile_stage(*program.workload, stage, 8).nodes) {
        feeds += node.feeds_gelu;
        reads += node.reads_gelu;
      }
    return std::pair(feeds, reads);
  };
  CHECK(pairs(gelu_net(2, true, 8)) == std::pair(2, 2));
  ModelGraph seen = gelu_net(1, true, 8);  // The sum reads the GELU's input as well, then its output.
  seen.layers[LayerId{1}].operations[2] = {
      .kind = OperationKind::Linear, .inputs = {1}, .columns = kInner, .inner = kInner};
  seen.layers[LayerId{1}].operations[3] = {.kind = OperationKind::Add, .inputs = {0, 2}, .columns = kInner};
  seen.layers[LayerId{2}].operations[0].columns = kInner;
  CHECK(pairs(seen) == std::pair(0, 0));
  seen.layers[LayerId{1}].operations[3].inputs = {1, 2};
  CHECK(pairs(seen) == std::pair(1, 0));
}

}  // namespace stagecraft::gelu_runs_test
