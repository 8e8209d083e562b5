#include "sim/cost/operation_kernels.hpp"

#include <doctest/doctest.h>

#include "sim/cost/pass_time.hpp"

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

double flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) sum += flops_of(kernel).value;
  return sum;
}

}  // namespace

TEST_CASE("the kernels of a layer's operations take what a closed form said of that layer") {
  struct Case {
    int tensor;
    bool sequence;
    int context;
    NumberFormat format;
    const char* stack;
    double products, attention, memory_bound, backward;  ///< Milliseconds of two samples.
  };
  // From the last commit that had the closed form, whose formulas an independent implementation had confirmed. Without
  // a context group the stacks differ in nothing that these kernels take.
  const Case cases[] = {
      {1, false, 1, NumberFormat::Bf16, "megatron-no-overlap", 14.4903796, 0.4822265, 0.4490373, 31.0900571},
      {1, false, 1, NumberFormat::Fp8, "torchtitan", 6.4832679, 0.4822265, 0.7056300, 15.4840612},
      {4, true, 1, NumberFormat::Bf16, "megatron-no-overlap", 3.6893402, 0.1768066, 0.1122593, 7.9194901},
      {4, true, 1, NumberFormat::Fp8, "torchtitan", 1.6663101, 0.1768066, 0.2356212, 4.0220893},
      {2, false, 1, NumberFormat::Bf16, "torchtitan", 7.2896867, 0.2786133, 0.3232081, 15.7417020},
      {2, false, 1, NumberFormat::Fp8, "megatron-no-overlap", 3.2719627, 0.2786133, 0.4909803, 7.9414361},
      {2, true, 4, NumberFormat::Bf16, "megatron-no-overlap", 1.8736554, 0.1259033, 0.0561297, 4.0951816},
      {2, true, 4, NumberFormat::Bf16, "torchtitan", 1.8736554, 0.1564453, 0.0561297, 4.2097141},
      {2, true, 4, NumberFormat::Fp8, "megatron-no-overlap", 0.8410050, 0.1259033, 0.0980727, 2.1031624},
      {2, true, 4, NumberFormat::Fp8, "torchtitan", 0.8410050, 0.1564453, 0.0980727, 2.2176948}};
  const Accelerator b200 = load_accelerator("topologies/devices/b200.yaml");
  for (const Case& c : cases) {
    CAPTURE(c.tensor);
    CAPTURE(c.context);
    const Degrees shard{.context = c.context, .tensor = c.tensor, .sequence = c.sequence};
    const PassKernels kernels =
        kernels_of(llama(), shard, whole_samples(2), {c.format, NumberFormat::Bf16}, software_stack(c.stack));
    const TimeByClass forward = kernel_time(kernels.forward, b200), backward = kernel_time(kernels.backward(), b200);
    const auto close = [](double milliseconds) { return doctest::Approx(1e-3 * milliseconds).epsilon(2e-6); };
    CHECK(forward.products.value == close(c.products));
    CHECK(forward.attention.value == close(c.attention));
    CHECK(forward.memory_bound.value == close(c.memory_bound));
    CHECK(backward.total().value == close(c.backward));
    const double casts = c.format == NumberFormat::Fp8 ? 4 : 0;
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
    const PassKernels kernels = kernels_of(op, {}, whole_samples(1), {}, software_stack("plain"));
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
  const double whole = flops(kernels_of(experts, {}, whole_samples(1), {}, software_stack("plain")).forward);
  // Each device of an expert group has as many rows, on fewer experts.
  const PassKernels by_expert = kernels_of(experts, {.expert = 8}, whole_samples(1), {}, software_stack("plain"));
  CHECK(flops(by_expert.forward) == doctest::Approx(whole));
  CHECK(by_expert.forward.front().batch == 8);
  CHECK(by_expert.forward.front().m == doctest::Approx(1.25 * 8 * kTokens / 8));
  // An expert-tensor pair has the rows of both and half of the columns.
  const PassKernels by_column =
      kernels_of(experts, {.expert_tensor = 2}, whole_samples(1), {}, software_stack("plain"));
  CHECK(flops(by_column.forward) == doctest::Approx(whole));
  CHECK(by_column.forward.front().n == 1024);
  // Replicated operations are divided by sequence parallelism alone.
  const auto bytes = [&](const Degrees& shard) {
    return kernels_of(replicated(RmsNorm), shard, whole_samples(1), {}, software_stack("plain"))
        .forward.front()
        .bytes.value;
  };
  CHECK(bytes({.tensor = 4}) == 4.0 * kTokens * kHidden);
  CHECK(bytes({.tensor = 4, .sequence = true}) == 4.0 * kTokens * kHidden / 4);
}

TEST_CASE("a bias after the second product of experts is weighted apart where the activation has the routing weights") {
  Operation second{.kind = GroupedLinear,
                   .inputs = {-1},
                   .rows = 8 * kTokens,
                   .columns = kHidden,
                   .inner = 2048,
                   .experts = 64,
                   .active = 8,
                   .division = Division::Experts,
                   .within_expert = Division::Row};
  const auto forward = [](const Operation& op, const char* stack) {
    return kernels_of(op, {.expert = 8}, whole_samples(1), {}, software_stack(stack)).forward;
  };
  REQUIRE(forward(second, "megatron-core").size() == 2);
  CHECK(forward(second, "megatron-core").back().bytes.value == doctest::Approx(28.0 * 8 * kTokens * kHidden));
  CHECK(forward(second, "nemo").size() == 1);  // Its combination weights the rows.
  Operation first = second;
  first.within_expert = Division::Column;
  CHECK(forward(first, "megatron-core").size() == 1);  // The product adds it.
  second.bias = false;
  CHECK(forward(second, "megatron-core").size() == 1);
}

TEST_CASE("scores of words stay in 16 bits, and views have no kernels") {
  const PassKernels head = kernels_of(linear(kHidden, 128256, Division::Vocabulary), {.tensor = 4}, whole_samples(1),
                                      {NumberFormat::Fp8, NumberFormat::Bf16}, software_stack("plain"));
  CHECK(head.forward.size() == 1);
  CHECK(head.forward.front().format == NumberFormat::Bf16);
  CHECK(head.forward.front().n == 128256 / 4);
  CHECK(kernels_of(replicated(Slice), {}, whole_samples(1), {}, software_stack("plain")).forward.empty());
}

}  // namespace stagecraft::operation_kernels_test
