// Selective recomputation on the emulated GPU: what attentions keep is recomputed, and no bit changes.

#include <doctest/doctest.h>

#include "tests/backends/cuda/run/gpu_case.hpp"

namespace stagecraft::selective_test {

namespace {

constexpr int kRows = 8, kWidth = 8, kHeads = 4, kMicroBatches = 6, kSamples = 2;
constexpr double kNumber = 8;

/// Two layers of attention and projection between data and a loss.
ModelGraph attending_net() {
  const auto op = [](OperationKind kind, int columns, int inner, int from) {
    return Operation{
        .kind = kind, .inputs = {from}, .rows = kRows, .columns = columns, .inner = inner, .heads = kHeads};
  };
  ModelGraph model;
  model.name = "attention";
  model.precision = {8, 8, 16, 8};
  model.layers.push_back(
      test::layer_of("input", {}, {{.kind = OperationKind::Input, .rows = kRows, .columns = kWidth}}, 8));
  for (int l = 0; l < 2; ++l)
    model.layers.push_back(
        test::layer_of("l" + std::to_string(l), {LayerId{l}},
                       {op(OperationKind::Linear, 3 * kWidth, kWidth, -1), op(OperationKind::Attention, kWidth, 0, 0),
                        op(OperationKind::Linear, kWidth, kWidth, 1)},
                       8));
  model.layers.push_back(test::layer_of("loss", {LayerId{2}}, {op(OperationKind::MeanSquare, kWidth, 0, -1)}, 8));
  return model;
}

}  // namespace

TEST_CASE("selective recomputation on the GPU gives the bits of the CPU without recomputation") {
  for (const char* schedule : {"1f1b", "gpipe"}) {
    test::Case c;
    c.schedule = schedule;
    c.model = attending_net();
    c.plan = test::stage_each(c.model, kMicroBatches, kSamples);
    const Timeline stashed = test::on_cpu(c, c.program());
    const Timeline whole = test::on_gpu(c, c.program(), {});
    for (Stage& stage : c.plan.stages) stage.shape.recomputation = Recomputation::Selective;
    for (const emulated_gpu::Machine& machine : test::machines(12)) {
      CAPTURE(machine.seed);
      const Timeline gpu = test::on_gpu(c, c.program(), machine);
      REQUIRE(gpu.learnt->losses == stashed.learnt->losses);
      REQUIRE(gpu.learnt->weights == stashed.learnt->weights);
      // Each micro-batch in flight saves `inside`, except the one being recomputed, whose output is there twice.
      const double saved =
          (whole.learnt->memory[DeviceId{0}].activations - gpu.learnt->memory[DeviceId{0}].activations).value;
      const double inside = kHeads * kRows * kRows * kSamples * kNumber, output = kRows * kWidth * kSamples * kNumber;
      const double there = c.schedule == "gpipe" ? kMicroBatches : 2;
      REQUIRE(saved >= (there - 1) * inside - output);
      REQUIRE(saved <= there * inside);
    }
  }
}

}  // namespace stagecraft::selective_test
