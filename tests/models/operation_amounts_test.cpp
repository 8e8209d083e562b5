// Parameters, floating-point operations and kept bytes of single operations, against published formulas.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "sim/model/operation.hpp"

namespace stagecraft::operation_amounts_test {
namespace {

using enum OperationKind;

constexpr int kTokens = 512, kWidth = 128, kHeads = 8, kKeyHeads = 2, kFeed = 320;

Operation product(int from, int inner, int columns, Division division, int rows = kTokens) {
  return {.kind = Linear,
          .inputs = {from},
          .rows = rows,
          .columns = columns,
          .inner = inner,
          .bias = false,
          .division = division};
}

Operation norm(int from) { return {.kind = RmsNorm, .inputs = {from}, .rows = kTokens, .columns = kWidth}; }

Operation sum(int a, int b) { return {.kind = Add, .inputs = {a, b}, .rows = kTokens, .columns = kWidth}; }

Operation attention(int from, bool fused) {
  return {.kind = Attention,
          .inputs = {from},
          .rows = kTokens,
          .columns = kWidth,
          .heads = kHeads,
          .causal = true,
          .key_value_heads = kKeyHeads,
          .fused = fused,
          .division = Division::Heads};
}

/// A layer of Llama: RMS norm, grouped queries, SwiGLU, fused attention.
std::vector<Operation> llama_layer() {
  const int head = kWidth / kHeads, columns = (kHeads + 2 * kKeyHeads) * head;
  const Operation rotary{.kind = Rotary,
                         .inputs = {1},
                         .rows = kTokens,
                         .columns = columns,
                         .heads = kHeads + kKeyHeads,
                         .head_width = head,
                         .rotary = head,
                         .division = Division::Heads};
  const Operation gate{.kind = GatedSilu,
                       .inputs = {7},
                       .rows = kTokens,
                       .columns = kFeed,
                       .inner = 2 * kFeed,
                       .division = Division::Column};
  return {norm(-1),
          product(0, kWidth, columns, Division::Column),
          rotary,
          attention(2, true),
          product(3, kWidth, kWidth, Division::Row),
          sum(-1, 4),
          norm(5),
          product(6, kWidth, 2 * kFeed, Division::Column),
          gate,
          product(8, kFeed, kWidth, Division::Row),
          sum(5, 9)};
}

double stash_of(const std::vector<Operation>& operations, ArrayDivision division) {
  double numbers = 0;
  for (const KeptArray& array : kept_arrays(operations)) numbers += array.division == division ? array.numbers : 0;
  return numbers;
}

}  // namespace

TEST_CASE("all kinds of operations, divisions and parameter classes have different words") {
  std::set<std::string_view> words;
  for (int kind = 0; kind <= static_cast<int>(SumSquare); ++kind)
    words.insert(to_text(static_cast<OperationKind>(kind)));
  CHECK(words.size() == static_cast<std::size_t>(SumSquare) + 1);
  CHECK(words.count("") == 0);
  CHECK(to_text(SumSquare) == "sum_square");
  CHECK(to_text(Division::Experts) == "experts");
  CHECK(to_text(ParameterClass::Expert) == "expert");
}

TEST_CASE("texts of operations that were there before new fields stay the same") {
  CHECK(to_text(Operation{.kind = Linear, .rows = 64, .columns = 512, .inner = 2048}) == "linear 64x512 from 2048");
  CHECK(to_text(Operation{.kind = Attention, .rows = 5, .columns = 12, .heads = 3, .causal = true}) ==
        "attention 5x12 3 heads causal");
  CHECK(to_text(Operation{.kind = Embedding, .rows = 5, .columns = 12, .inner = 11}) == "embedding 5x12 of 11 words");
}

TEST_CASE("a layer of Llama keeps 12 + 4 g/a + 6 f/h bytes for each number of the width, all of it divided") {
  const double s = kTokens, h = kWidth, g_over_a = static_cast<double>(kKeyHeads) / kHeads, f_over_h = kFeed / h;
  CHECK(stash_bytes(llama_layer(), 2).value == s * h * (12 + 4 * g_over_a + 6 * f_over_h));
  // The inputs of both norms and of both column-divided products are divided by rows, with sequence parallelism.
  CHECK(stash_of(llama_layer(), ArrayDivision::Sequence) == 4 * s * h);
  CHECK(stash_of(llama_layer(), ArrayDivision::Tensor) == s * h * (2 + 2 * g_over_a + 3 * f_over_h));
}

TEST_CASE("an attention that is not fused keeps its probabilities instead of its output") {
  const double s = kTokens;
  std::vector<Operation> alone{attention(-1, false)};
  const std::vector<KeptArray> arrays = kept_arrays(alone);
  REQUIRE(arrays.size() == 2);
  CHECK(arrays[0].numbers == s * (kWidth + 2 * kWidth * kKeyHeads / kHeads));
  CHECK(arrays[1].numbers == kHeads * s * s);
  CHECK(arrays[1].probabilities);
  alone[0].fused = true;
  CHECK(kept_arrays(alone)[1].numbers == s * kWidth);
  CHECK_FALSE(kept_arrays(alone)[1].probabilities);
}

TEST_CASE("fused attention computes only pairs that are not masked, and its scores twice") {
  Operation op = attention(-1, false);
  const double s = kTokens, whole = 4 * s * s * kWidth;
  CHECK(flops(op, Pass::Forward).value == whole);
  CHECK(flops(op, Pass::InputGradient).value == 2 * whole);
  CHECK(flops(op, Pass::WeightGradient).value == 0);
  op.fused = true;
  CHECK(flops(op, Pass::Forward).value == whole / 2);
  CHECK(flops(op, Pass::InputGradient).value == 2.5 * whole / 2);
  op.window = 64;
  CHECK(attention_pairs(op, op.rows) == 64 * s - 64 * 64 / 2);
  op.window = 2 * kTokens;  // A window that is longer than the sample changes nothing.
  CHECK(attention_pairs(op, op.rows) == s * s / 2);
  op.causal = false;
  CHECK(attention_pairs(op, op.rows) == s * s);
}

TEST_CASE("a window counts about the pairs that a mask leaves") {
  Operation op = attention(-1, true);
  for (const int window : {1, 7, 64, kTokens}) {
    op.window = window;
    double pairs = 0;
    for (int row = 0; row < kTokens; ++row) pairs += std::min(row + 1, window);
    CHECK(attention_pairs(op, op.rows) <= pairs);
    CHECK(attention_pairs(op, op.rows) >= pairs - kTokens / 2.0 - window / 2.0);  // Half of the diagonal.
  }
}

TEST_CASE("a latent attention has wider heads of queries than of values") {
  const Operation op{.kind = Attention,
                     .inputs = {0, 1, 2},
                     .rows = 10,
                     .columns = 4 * 128,
                     .heads = 4,
                     .causal = true,
                     .head_width = 192,
                     .division = Division::Heads};
  CHECK(head_shape(op).query == 192);
  CHECK(head_shape(op).value == 128);
  CHECK(flops(op, Pass::Forward).value == 2.0 * 10 * 10 * 4 * (192 + 128));
}

TEST_CASE("parameters belong to classes that decide who holds them") {
  const Degrees d{.tensor = 4, .expert = 8, .expert_tensor = 2};
  Operation row = product(0, 64, 32, Division::Row);
  row.bias = true;
  CHECK(parameters_by_class(row)[ParameterClass::Divided] == 64 * 32);
  CHECK(parameters_by_class(row)[ParameterClass::Replicated] == 32);
  CHECK(parameters_on_device(row, d) == 64 * 32 / 4 + 32);

  const Operation words{.kind = Embedding, .rows = 16, .columns = 8, .inner = 100, .division = Division::Vocabulary};
  CHECK(parameters_by_class(words)[ParameterClass::Divided] == 800);
  CHECK(parameters_by_class(words)[ParameterClass::Replicated] == 128);

  const Operation heads{.kind = HeadNorm, .heads = 4, .head_width = 32, .division = Division::Heads};
  CHECK(parameters_by_class(heads)[ParameterClass::Replicated] == 64);

  const Operation experts{.kind = GroupedLinear,
                          .rows = 40,
                          .columns = 24,
                          .inner = 16,
                          .bias = false,
                          .experts = 64,
                          .active = 4,
                          .division = Division::Experts};
  CHECK(experts.parameters() == 64 * 16 * 24);
  CHECK(active_parameters(experts) == 4 * 16 * 24);
  CHECK(parameters_by_class(experts)[ParameterClass::Expert] == 64 * 16 * 24);
  CHECK(parameters_on_device(experts, d) == 64 * 16 * 24 / 16);
  CHECK(flops(experts, Pass::WeightGradient).value == 2 * 40 * 16 * 24);
}

TEST_CASE("the arrays of experts are counted on their own, and the router is kept once") {
  constexpr int k = 2, rows = kTokens, sent = rows * k, experts = 16;
  const Operation router{.kind = Router,
                         .inputs = {-1},
                         .rows = rows,
                         .columns = experts,
                         .inner = kWidth,
                         .bias = false,
                         .experts = experts,
                         .active = k};
  const Operation dispatch{.kind = Dispatch,
                           .inputs = {-1, 0},
                           .rows = sent,
                           .columns = kWidth,
                           .experts = experts,
                           .active = k,
                           .division = Division::Experts};
  const auto grouped = [](int from, int inner, int columns) {
    return Operation{.kind = GroupedLinear,
                     .inputs = {from},
                     .rows = sent,
                     .columns = columns,
                     .inner = inner,
                     .bias = false,
                     .experts = experts,
                     .active = k,
                     .division = Division::Experts};
  };
  const Operation gate{.kind = GatedSilu,
                       .inputs = {2},
                       .rows = sent,
                       .columns = kFeed,
                       .inner = 2 * kFeed,
                       .division = Division::Experts};
  Operation combine = dispatch;
  combine.kind = Combine, combine.inputs = {4, 0}, combine.rows = rows;
  const std::vector<Operation> layer{router, dispatch, grouped(1, kWidth, 2 * kFeed), gate, grouped(3, kFeed, kWidth),
                                     combine};
  // The dispatched rows, three arrays of the width of an expert, and the rows that are combined.
  CHECK(stash_of(layer, ArrayDivision::Expert) == sent * (2.0 * kWidth + 3 * kFeed));
  // The input of the router, and its scores.
  CHECK(stash_of(layer, ArrayDivision::Sequence) == rows * (kWidth + 1.0 * experts));
}

TEST_CASE("a view and a rotation cost no operations and keep nothing") {
  for (const OperationKind kind : {Slice, Rotary, Add, Dispatch}) {
    const Operation op{.kind = kind, .inputs = {-1}, .rows = 8, .columns = 6};
    CHECK(flops(op, Pass::Forward).value == 0);
    CHECK(op.parameters() == 0);
    CHECK(kept_arrays({op}).empty());
  }
}

}  // namespace stagecraft::operation_amounts_test
