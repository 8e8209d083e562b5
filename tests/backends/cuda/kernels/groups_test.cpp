// Kernels for devices that divide an operation, against the kernels of the CPU.
#include "tests/backends/cuda/kernels/computation.hpp"

namespace stagecraft::kernels_of_groups_test {
using test::bound_of;
using test::Computation;
using test::Results;

namespace {

constexpr std::size_t kWidths[] = {2, 4, 8};  // 2: mixed precision.

/// In mixed precision: results are rounded where they may differ as floats do.
double rounded_bound(std::size_t width) { return bound_of(width) + (width == 2 ? 2 * 0x1p-8 : 0); }

/// Attention of `rows` queries, of numbers up to 1, with heads of width 3 of which `sharing` share their keys. In mixed
/// precision probabilities p may be 2 u p apart, with u = 2^-8. Gradients of scores, at most 2 sqrt(w) p, have that and
/// their own rounding, so they are up to 4 u 2 sqrt(w) p apart. Gradients of keys sum them over the rows of all heads
/// that share these; a result is rounded itself.
double attention_bound(std::size_t width, int rows, int sharing) {
  return bound_of(width) + (width == 2 ? 2 * 0x1p-8 * (4 * std::sqrt(3.0) * rows * sharing + 1) : 0);
}

/// Floats that differ in their last bits are rounded to different numbers where they lie within 64 2^-24 of the middle
/// of two, which are 2^-8 apart: for about one factor in a thousand. A result has fewer than 64 factors.
double attention_share(std::size_t width) { return width == 2 ? 0.1 : 1; }

}  // namespace

TEST_CASE("the larger of two numbers") {
  for (const std::size_t width : kWidths)
    test::compare_with_cpu(width, 0, [](Computation& c) {
      const real::Tensor from = c.wide_array(7, 33), to = c.wide_array(7, 33);
      c.kernels().maximum(from, to);
      return Results{c.numbers(to)};
    });
}

TEST_CASE("some columns of some rows are copied, and the others stay") {
  for (const std::size_t width : kWidths)
    test::compare_with_cpu(width, 0, [&](Computation& c) {
      const real::Tensor from = c.array(9, 40), to = c.array(7, 50);
      c.kernels().copy_rows(static_cast<const char*>(from.data) + 3 * width, 40,
                            static_cast<char*>(to.data) + 5 * width, 50, 6, 33);
      return Results{c.numbers(to)};
    });
}

TEST_CASE("embeddings of some words, of some rows, with and without positions") {
  for (const std::size_t width : kWidths)
    for (const bool positions : {false, true})
      for (const int first_word : {0, 5})
        test::compare_with_cpu(width, 0, [&](Computation& c) {
          Operation op{.kind = OperationKind::Embedding, .rows = 12, .columns = 5, .inner = 9};
          op.positions = positions;
          real::Call call;
          const real::Tensor input = c.words(3 * 4, 20), weights = c.array(1, real::blocks(op, width).total);
          const real::Tensor d_weights = c.wide_array(1, weights.columns), output = c.array(3 * 4, 5);
          call.operation = &op;
          call.samples = 3;
          call.inputs = {&input, 1};
          call.weights = weights.data;
          call.output = output;
          call.first_row = 8;
          call.first_word = first_word, call.words = 20;
          c.kernels().forward(call);
          c.kernels().weight_gradient(call, c.array(3 * 4, 5), d_weights.data);
          return Results{c.numbers(output), c.numbers(d_weights)};
        });
}

TEST_CASE("cross entropy over some classes, step by step") {
  for (const std::size_t width : kWidths)
    for (const int first_word : {0, 7})
      test::compare_with_cpu(width, bound_of(width), [&](Computation& c) {
        const Operation op{.kind = OperationKind::CrossEntropy, .rows = 6, .columns = 9};
        const real::Tensor inputs[] = {c.array(3 * 6, 9), c.words(3 * 6, 23)};
        real::Call call;
        call.operation = &op;
        call.samples = 3;
        call.inputs = inputs;
        call.saved = c.wide_array(3 * 6, 9);
        call.output = c.wide_array(1, 1);
        call.scale = 1.0 / 64;
        call.first_word = first_word, call.words = 23;
        const real::DividedLoss rows{c.wide_array(1, 18), c.wide_array(1, 18), c.wide_array(1, 18)};
        Results results;
        using enum real::DividedLossStep;
        c.kernels().divided_loss(Largest, call, rows);
        results.push_back(c.numbers(rows.largest));
        c.kernels().divided_loss(Sums, call, rows);
        results.push_back(c.numbers(rows.sums));
        results.push_back(c.numbers(rows.targets));
        c.kernels().divided_loss(Gradient, call, rows);
        results.push_back(c.numbers(call.saved));
        results.push_back(c.numbers(call.output));
        return results;
      });
}

TEST_CASE("records of scores over divided words, step by step") {
  constexpr int kRows = 18, kWords = 16;
  for (const std::size_t width : kWidths)
    for (const int inner : {0, 5})
      test::compare_with_cpu(width, rounded_bound(width), [&](Computation& c) {
        Operation op{.kind = OperationKind::CrossEntropy, .rows = 6, .columns = kWords};
        const real::Tensor targets = c.words(kRows, 2 * kWords);
        const std::int64_t columns = real::ScoreRecords::columns(inner);
        using enum real::ScoreStep;
        const auto record = [&](int first_word, const real::Tensor& here, const real::Tensor& saved) {
          const real::Tensor inputs[] = {c.array(kRows, kWords), targets};
          real::Call call;
          call.operation = &op;
          call.samples = 3;
          call.inputs = inputs;
          call.saved = saved;
          call.scale = 1.0 / 64;
          call.first_word = first_word, call.words = 2 * kWords;
          if (inner > 0) call.weights = c.array(kWords, inner).data;
          c.kernels().divided_scores(Record, call, {here, {}, inner});
          return real::KeptCall(call);
        };
        const real::Tensor here = c.wide_array(kRows, columns), other = c.wide_array(kRows, columns);
        const real::Tensor joint = c.wide_array(kRows, columns), saved = c.wide_array(kRows, kWords);
        const real::KeptCall saved_call = record(0, here, saved);
        record(kWords, other, c.wide_array(kRows, kWords));
        c.kernels().copy(here.data, joint.data, real::bytes_of(c.kernels(), joint));
        c.kernels().divided_scores(Join, {}, {other, joint, inner});
        Results results{c.numbers(here), c.numbers(joint), c.numbers(saved)};
        real::Call call = saved_call.call();
        call.output = c.wide_array(1, 1);
        c.kernels().divided_scores(Gradient, call, {here, joint, inner});
        results.push_back(c.numbers(call.saved));
        results.push_back(c.numbers(call.output));
        if (inner == 0) return results;
        call.output = c.array(kRows, inner);
        c.kernels().divided_scores(InputGradient, call, {here, joint, inner});
        results.push_back(c.numbers(call.output));
        return results;
      });
}

TEST_CASE("a class beyond the last one makes the loss NaN") {
  test::Gpu gpu(8);
  Computation c(gpu.kernels());
  const Operation op{.kind = OperationKind::CrossEntropy, .rows = 1, .columns = 4};
  const real::Tensor inputs[] = {c.array(1, 4), c.words(1, 1)};
  c.kernels().upload(std::vector{8.0}, inputs[1].data);
  real::Call call;
  call.operation = &op;
  call.inputs = inputs;
  call.saved = c.array(1, 4);
  call.output = c.array(1, 1);
  call.words = 8;
  const real::DividedLoss rows{c.array(1, 1), c.array(1, 1), c.array(1, 1)};
  using enum real::DividedLossStep;
  for (const auto step : {Largest, Sums, Gradient}) c.kernels().divided_loss(step, call, rows);
  CHECK(std::isnan(c.numbers(call.output).front()));
}

TEST_CASE("rows are turned by the position that they have in the whole sample") {
  for (const std::size_t width : kWidths)
    for (const bool add : {false, true})
      test::compare_with_cpu(width, rounded_bound(width), [&](Computation& c) {
        Operation op{.kind = OperationKind::Rotary, .rows = 4, .columns = 23};
        op.heads = 3, op.head_width = 6, op.rotary = 4;
        const real::Tensor input = c.array(2 * 4, 23);
        real::Call call;
        call.operation = &op;
        call.samples = 2;
        call.inputs = {&input, 1};
        call.first_row = 8;
        call.output = c.array(2 * 4, 23);
        const real::Gradient to{c.array(2 * 4, 23), add};
        c.kernels().forward(call);
        c.kernels().input_gradient(call, c.array(2 * 4, 23), {&to, 1});
        return Results{c.numbers(call.output), c.numbers(to.tensor)};
      });
}

TEST_CASE("attention of some rows to the keys of all") {
  for (const std::size_t width : kWidths)
    for (const int key_heads : {4, 2, 1})
      for (const bool causal : {false, true})
        for (const bool add : {false, true})
          test::compare_with_cpu(
              width, attention_bound(width, 4, 4 / key_heads),
              [&](Computation& c) {
                Operation op{.kind = OperationKind::Attention, .rows = 4, .columns = 12};
                op.heads = 4, op.key_value_heads = key_heads, op.causal = causal;
                const int keys = 6 * key_heads, input_columns = 12 + keys;
                const real::Tensor inputs[] = {c.array(2 * 4, input_columns), c.array(2 * 12, keys)};
                real::Call call;
                call.operation = &op;
                call.samples = 2;
                call.inputs = inputs;
                call.first_row = 4;
                call.saved = c.array(2, 4 * 4 * 12);
                call.output = c.array(2 * 4, 12);
                const real::Gradient to[] = {{c.array(2 * 4, input_columns), add}, {c.array(2 * 12, keys), !add}};
                c.kernels().forward(call);
                c.kernels().input_gradient(call, c.array(2 * 4, 12), to);
                return Results{c.numbers(call.output), c.numbers(call.saved), c.numbers(to[0].tensor),
                               c.numbers(to[1].tensor)};
              },
              attention_share(width));
}

TEST_CASE("attention to one part of the keys after another") {
  constexpr int kParts = 3, kRows = 4;
  for (const std::size_t width : kWidths)
    for (const int key_heads : {4, 2, 1})
      for (const bool causal : {false, true})
        for (int rank = 0; rank < kParts; ++rank)
          test::compare_with_cpu(
              width, attention_bound(width, kRows, 4 / key_heads),
              [&](Computation& c) {
                Operation op{.kind = OperationKind::Attention, .rows = kRows, .columns = 12};
                op.heads = 4, op.key_value_heads = key_heads, op.causal = causal;
                const int keys = 6 * key_heads, input_columns = 12 + keys;
                const real::Tensor input = c.array(2 * kRows, input_columns);
                real::Call call;
                call.operation = &op;
                call.samples = 2;
                call.inputs = {&input, 1};
                call.first_row = rank * kRows;
                call.saved = c.wide_array(2, 4 * 2 * kRows);
                const real::Tensor output = c.array(2 * kRows, 12), sums = c.wide_array(2 * kRows, 12);
                call.output = width == real::kMixedWidth ? sums : output;
                std::vector<real::KeyPart> parts;
                for (int step = 0; step < kParts; ++step)
                  parts.push_back({c.array(2 * kRows, keys), (rank - step + kParts) % kParts * kRows, kParts * kRows,
                                   step == 0, step + 1 == kParts});
                for (const real::KeyPart& part : parts) c.kernels().attention_part(call, part);
                if (width == real::kMixedWidth) c.kernels().narrow(sums, output);
                call.output = output;
                Results results{c.numbers(call.output), c.numbers(call.saved)};
                const real::Tensor dy = c.array(2 * kRows, 12), d_input = c.wide_array(2 * kRows, input_columns);
                for (const real::KeyPart& part : parts) {
                  const real::Tensor d_keys = c.array(2 * kRows, keys);
                  c.kernels().attention_part_gradient(call, part, dy, d_input, d_keys);
                  results.push_back(c.numbers(d_keys));
                }
                results.push_back(c.numbers(d_input));
                return results;
              },
              attention_share(width));
}

TEST_CASE("numbers of 16 bits are added to numbers of 32") {
  test::compare_with_cpu(real::kMixedWidth, 0, [](Computation& c) {
    const real::Tensor from = c.array(7, 33), to = c.wide_array(7, 33), narrow = c.array(7, 33);
    c.kernels().add(from, to);
    c.kernels().narrow(to, narrow);
    return Results{c.numbers(to), c.numbers(narrow)};
  });
}

}  // namespace stagecraft::kernels_of_groups_test
