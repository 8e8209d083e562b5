#include "sim/cost/operation_kernels.hpp"

#include <doctest/doctest.h>

#include "sim/cost/closed_form.hpp"

namespace stagecraft::operation_kernels_test {
namespace {

using enum OperationKind;

constexpr int kTokens = 4096, kHidden = 8192, kHeads = 64, kKeyHeads = 8, kWidth = 28672, kHead = 128;

Operation linear(int inner, int columns, Division division) {
  return {.kind = Linear,
          .inputs = {-1},
          .rows = kTokens,
          .columns = columns,
          .inner = inner,
          .bias = false,
          .division = division};
}

Operation replicated(OperationKind kind, std::vector<int> inputs = {-1}) {
  return {.kind = kind, .inputs = std::move(inputs), .rows = kTokens, .columns = kHidden};
}

Operation attention(bool fused) {
  return {.kind = Attention,
          .inputs = {-1},
          .rows = kTokens,
          .columns = kHidden,
          .heads = kHeads,
          .causal = true,
          .key_value_heads = kKeyHeads,
          .fused = fused,
          .division = Division::Heads};
}

/// A layer of Llama 3 70B.
std::vector<Operation> llama() {
  const Operation rotary{.kind = Rotary,
                         .inputs = {-1},
                         .rows = kTokens,
                         .columns = kHidden + 2 * kKeyHeads * kHead,
                         .heads = kHeads + kKeyHeads,
                         .head_width = kHead,
                         .rotary = kHead,
                         .division = Division::Heads};
  const Operation gate{.kind = GatedSilu,
                       .inputs = {-1},
                       .rows = kTokens,
                       .columns = kWidth,
                       .inner = 2 * kWidth,
                       .division = Division::Column};
  return {replicated(RmsNorm),
          linear(kHidden, kHidden + 2 * kKeyHeads * kHead, Division::Column),
          rotary,
          attention(true),
          linear(kHidden, kHidden, Division::Row),
          replicated(Add, {-1, 0}),
          replicated(RmsNorm),
          linear(kHidden, 2 * kWidth, Division::Column),
          gate,
          linear(kWidth, kHidden, Division::Row),
          replicated(Add, {-1, 0})};
}

TrainingRun run_of(const Degrees& shard, NumberFormat format, const char* stack) {
  TrainingRun run;
  run.model = {.layers = 80,
               .hidden = kHidden,
               .heads = kHeads,
               .key_value_heads = kKeyHeads,
               .width = kWidth,
               .sequence = kTokens,
               .vocabulary = 128256,
               .gated = true,
               .tied = false};
  run.software = software_stack(stack);
  run.format = format;
  run.degrees.tensor = shard.tensor;
  run.degrees.context = shard.context;
  run.sequence_parallel = shard.sequence;
  run.micro_batch = 2;
  return run;
}

double flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) sum += flops_of(kernel).value;
  return sum;
}

}  // namespace

TEST_CASE("the kernels of a layer's operations take what the closed form says of that layer") {
  const Accelerator b200 = load_accelerator("topologies/devices/b200.yaml");
  for (const Degrees& shard : {Degrees{}, Degrees{.tensor = 4, .sequence = true}, Degrees{.tensor = 2},
                               Degrees{.context = 4, .tensor = 2, .sequence = true}})
    for (const NumberFormat format : {NumberFormat::Bf16, NumberFormat::Fp8})
      for (const char* stack : {"megatron-core", "torchtitan"}) {
        CAPTURE(shard.tensor);
        CAPTURE(shard.context);
        const PassKernels kernels = kernels_of(llama(), shard, 2, {format, NumberFormat::Bf16}, software_stack(stack));
        const LayerTime layer = layer_time(run_of(shard, format, stack), b200, true);
        const TimeByClass forward = kernel_time(kernels.forward, b200),
                          backward = kernel_time(kernels.backward(), b200);
        CHECK(forward.products.value == doctest::Approx(layer.forward.products.value).epsilon(1e-12));
        CHECK(forward.attention.value == doctest::Approx(layer.forward.attention.value).epsilon(1e-12));
        CHECK(forward.memory_bound.value == doctest::Approx(layer.forward.memory_bound.value).epsilon(1e-12));
        CHECK(backward.total().value == doctest::Approx(layer.backward.kernels().value).epsilon(1e-12));
        const double casts = format == NumberFormat::Fp8 ? 4 : 0;
        CHECK(launch_count(kernels.forward) == 12 + casts);
        CHECK(launch_count(kernels.backward()) == 20 + casts);
      }
}

TEST_CASE("kernels do the floating-point operations of their operation") {
  Operation experts{.kind = GroupedLinear,
                    .inputs = {-1},
                    .rows = 8 * kTokens,
                    .columns = 2048,
                    .inner = kHidden,
                    .bias = false,
                    .experts = 64,
                    .active = 8,
                    .division = Division::Experts,
                    .within_expert = Division::Column};
  for (const Operation& op : {linear(kHidden, 1024, Division::Column), attention(true), attention(false), experts}) {
    CAPTURE(to_text(op));
    const PassKernels kernels = kernels_of(op, {}, 1, {}, software_stack("plain"));
    CHECK(flops(kernels.forward) == doctest::Approx(flops(op, Pass::Forward).value));
    CHECK(flops(kernels.backward()) ==
          doctest::Approx(flops(op, Pass::InputGradient).value + flops(op, Pass::WeightGradient).value));
  }
}

TEST_CASE("a group divides the operations of each of its axes") {
  Operation experts{.kind = GroupedLinear,
                    .inputs = {-1},
                    .rows = 8 * kTokens,
                    .columns = 2048,
                    .inner = kHidden,
                    .bias = false,
                    .experts = 64,
                    .active = 8,
                    .imbalance = 1.25,
                    .division = Division::Experts,
                    .within_expert = Division::Column};
  const double whole = flops(kernels_of(experts, {}, 1, {}, software_stack("plain")).forward);
  // Each device of an expert group has as many rows, on fewer experts.
  const PassKernels by_expert = kernels_of(experts, {.expert = 8}, 1, {}, software_stack("plain"));
  CHECK(flops(by_expert.forward) == doctest::Approx(whole));
  CHECK(by_expert.forward.front().batch == 8);
  CHECK(by_expert.forward.front().m == doctest::Approx(1.25 * 8 * kTokens / 8));
  // An expert-tensor pair has the rows of both and half of the columns.
  const PassKernels by_column = kernels_of(experts, {.expert_tensor = 2}, 1, {}, software_stack("plain"));
  CHECK(flops(by_column.forward) == doctest::Approx(whole));
  CHECK(by_column.forward.front().n == 1024);
  // Replicated operations are divided by sequence parallelism alone.
  const auto bytes = [&](const Degrees& shard) {
    return kernels_of(replicated(RmsNorm), shard, 1, {}, software_stack("plain")).forward.front().bytes.value;
  };
  CHECK(bytes({.tensor = 4}) == 4.0 * kTokens * kHidden);
  CHECK(bytes({.tensor = 4, .sequence = true}) == 4.0 * kTokens * kHidden / 4);
}

TEST_CASE("scores of words stay in 16 bits, and views have no kernels") {
  const PassKernels head = kernels_of(linear(kHidden, 128256, Division::Vocabulary), {.tensor = 4}, 1,
                                      {NumberFormat::Fp8, NumberFormat::Bf16}, software_stack("plain"));
  CHECK(head.forward.size() == 1);
  CHECK(head.forward.front().format == NumberFormat::Bf16);
  CHECK(head.forward.front().n == 128256 / 4);
  CHECK(kernels_of(replicated(Slice), {}, 1, {}, software_stack("plain")).forward.empty());
}

}  // namespace stagecraft::operation_kernels_test
