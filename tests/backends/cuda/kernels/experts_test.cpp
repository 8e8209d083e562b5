// Kernels of experts, against the kernels of the CPU.
#include "tests/backends/cuda/kernels/computation.hpp"

namespace stagecraft::kernels_of_experts_test {
using test::bound_of;
using test::Computation;
using test::Results;

namespace {

constexpr std::size_t kWidths[] = {4, 8};
constexpr int kExperts = 5, kColumns = 33;

Operation operation(OperationKind kind, int active) {
  Operation op{.kind = kind, .rows = 9, .columns = kColumns};
  op.experts = kExperts, op.active = active;
  return op;
}

}  // namespace

TEST_CASE("the experts of each row, the first of those with equal scores") {
  for (const std::size_t width : kWidths)
    for (const int active : {1, 2, 5})
      test::compare_with_cpu(width, 0, [&](Computation& c) {
        const Operation op = operation(OperationKind::Router, active);
        std::vector<std::int32_t> chosen(static_cast<std::size_t>(18 * active));
        real::Tensor scores = c.words(18 * kExperts, 4);
        scores.rows = 18, scores.columns = kExperts;
        c.kernels().choose_experts(op, scores, chosen);
        return Results{{chosen.begin(), chosen.end()}};
      });
}

TEST_CASE("rows are repeated for their experts, and their gradients are summed") {
  for (const std::size_t width : kWidths)
    for (const bool add : {false, true})
      test::compare_with_cpu(width, 0, [&](Computation& c) {
        const Operation op = operation(OperationKind::Dispatch, 2);
        const real::Tensor inputs[] = {c.array(18, kColumns), c.array(18, kExperts)};
        real::Call call;
        call.operation = &op;
        call.samples = 2;
        call.inputs = inputs;
        call.output = c.array(36, kColumns);
        const real::Gradient to[] = {{c.array(18, kColumns), add}, {c.array(18, kExperts), !add}};
        c.kernels().forward(call);
        c.kernels().input_gradient(call, c.array(36, kColumns), to);
        return Results{c.numbers(call.output), c.numbers(to[0].tensor), c.numbers(to[1].tensor)};
      });
}

TEST_CASE("the results of experts are weighed by the softmax of their scores") {
  for (const std::size_t width : kWidths)
    for (const int active : {1, 3})
      for (const bool add : {false, true})
        test::compare_with_cpu(width, bound_of(width), [&](Computation& c) {
          const Operation op = operation(OperationKind::Combine, active);
          const real::Tensor inputs[] = {c.array(18 * active, kColumns), c.array(18, kExperts)};
          real::Call call;
          call.operation = &op;
          call.samples = 2;
          call.inputs = inputs;
          call.output = c.array(18, kColumns);
          const real::Gradient to[] = {{c.array(18 * active, kColumns), add}, {c.array(18, kExperts), !add}};
          c.kernels().forward(call);
          c.kernels().input_gradient(call, c.array(18, kColumns), to);
          return Results{c.numbers(call.output), c.numbers(to[0].tensor), c.numbers(to[1].tensor)};
        });
}

TEST_CASE("a product for each expert, also where one has no rows") {
  const std::vector<std::int64_t> expert_rows{0, 4, 4, 11, 12, 12};
  for (const std::size_t width : kWidths)
    for (const bool bias : {false, true})
      for (const bool add : {false, true})
        test::compare_with_cpu(width, bound_of(width), [&](Computation& c) {
          Operation op = operation(OperationKind::GroupedLinear, 1);
          op.inner = 7, op.bias = bias;
          const real::Tensor input = c.array(12, 7), weights = c.array(1, real::blocks(op, width).total);
          const real::Tensor d_weights = c.array(1, weights.columns), dy = c.array(12, kColumns);
          real::Call call;
          call.operation = &op;
          call.inputs = {&input, 1};
          call.weights = weights.data;
          call.output = c.array(12, kColumns);
          call.expert_rows = expert_rows;
          const real::Gradient to[] = {{c.array(12, 7), add}};
          c.kernels().forward(call);
          c.kernels().input_gradient(call, dy, to);
          c.kernels().weight_gradient(call, dy, d_weights.data);
          return Results{c.numbers(call.output), c.numbers(to[0].tensor), c.numbers(d_weights)};
        });
}

}  // namespace stagecraft::kernels_of_experts_test
