#pragma once

#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "tests/backends/cpu/trial.hpp"

// Tensor operations as cases of tests: against a definition of each number, and gradients against finite differences.

namespace stagecraft::tensor_test {
using namespace stagecraft::test;

using Real = long double;
using Numbers = std::vector<Real>;

inline TensorShape index_of(std::int64_t i, const TensorShape& shape) {
  TensorShape index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; i /= shape[d]) index[d] = i % shape[d];
  return index;
}

/// The place of an index in an array, whose dimensions of one entry stand for all.
inline std::int64_t place_of(const TensorShape& shape, const TensorShape& index) {
  std::int64_t place = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t i = index[index.size() - shape.size() + d];
    place = place * shape[d] + (shape[d] == 1 ? 0 : i);
  }
  return place;
}

/// The number i of the output, from the operands of one part of a Case.
using Reference = Real (*)(const TensorOperation&, const std::vector<Numbers>& operands, std::int64_t i);

inline Numbers output_of(const TensorOperation& op, const std::vector<Numbers>& x, Reference number_at) {
  Numbers y;
  for (std::int64_t i = 0; i < numbers_of(op.shape); ++i) y.push_back(number_at(op, x, i));
  return y;
}

inline TensorOperand input(TensorShape shape) { return {OperandSource::Input, std::move(shape)}; }
inline TensorOperand weights(TensorShape shape) { return {OperandSource::Weights, std::move(shape)}; }
inline TensorOperand constant(TensorShape shape, std::vector<double> values) {
  return {OperandSource::Constant, std::move(shape), std::move(values)};
}

inline TensorOperation tensor(TensorFunction f, TensorShape shape, std::vector<TensorOperand> operands) {
  return {.function = f, .name = "case", .shape = std::move(shape), .operands = std::move(operands)};
}

/// Numbers at which slopes are moderate: positive ones for roots, logarithms and powers, none near 0 for quotients.
inline void move_from_zero(TensorFunction f, std::vector<double>& numbers) {
  const bool is_positive =
      f == TensorFunction::SquareRoot || f == TensorFunction::Logarithm || f == TensorFunction::Power;
  if (!is_positive && f != TensorFunction::Divide && f != TensorFunction::Reciprocal) return;
  for (double& x : numbers) x = is_positive ? std::abs(x) + 0.5 : x + std::copysign(0.5, x);
}

/// `whole` is computed for each of `parts`: the operation for each sample, or one for all of them where they share
/// statistics.
struct Case {
  Trial trial;
  TrialData data;
  TensorOperation whole;
  std::int64_t parts;
};

inline Case case_of(const TensorOperation& op, std::size_t width, std::int64_t samples = 2) {
  Case c{{to_text(op), {.kind = OperationKind::Tensor}, samples, {}}, {}, op, samples};
  if (op.function == TensorFunction::BatchNorm && op.operands.size() == 2) {
    c.parts = 1;
    c.whole.shape[0] = c.whole.operands[0].shape[0] *= samples;
  }
  c.trial.op.columns = static_cast<int>(numbers_of(op.shape));
  c.trial.op.tensor = std::make_shared<const TensorOperation>(op);
  for (const TensorOperand& o : op.operands)
    if (o.source == OperandSource::Input) c.trial.columns.push_back(static_cast<int>(numbers_of(o.shape)));
  c.data = data_for(c.trial, width);
  for (std::vector<double>& numbers : c.data.inputs) move_from_zero(op.function, numbers);
  move_from_zero(op.function, c.data.weights);
  return c;
}

/// The operands of one part. `place` is their place among the inputs.
inline std::vector<Numbers> operands_of(const Case& c, std::int64_t part) {
  std::vector<Numbers> x;
  std::size_t place = 0;
  for (const TensorOperand& o : c.whole.operands) {
    const std::int64_t count = numbers_of(o.shape);
    if (o.source == OperandSource::Constant) x.emplace_back(o.values.begin(), o.values.end());
    if (o.source == OperandSource::Weights) x.emplace_back(c.data.weights.begin(), c.data.weights.begin() + count);
    if (o.source != OperandSource::Input) continue;
    const auto first = c.data.inputs[place++].begin() + part * count;
    x.emplace_back(first, first + count);
  }
  return x;
}

/// Central differences of the sum of the gradients times the outputs of a part, by each number of operand k.
inline Numbers slopes_of(const Case& c, std::int64_t part, std::size_t k, Reference number_at) {
  constexpr Real step = 0x1p-21L;
  const TensorOperation& op = c.whole;
  std::vector<Numbers> x = operands_of(c, part);
  const auto objective = [&] {
    Real sum = 0;
    const Numbers y = output_of(op, x, number_at);
    for (std::size_t i = 0; i < y.size(); ++i)
      sum += y[i] * static_cast<Real>(c.data.d_output[static_cast<std::size_t>(part) * y.size() + i]);
    return sum;
  };
  Numbers slopes;
  for (std::size_t i = 0; i < x[k].size(); ++i) {
    const Real before = x[k][i];
    x[k][i] = before + step;
    const Real above = objective();
    x[k][i] = before - step;
    slopes.push_back((above - objective()) / (2 * step));
    x[k][i] = before;
  }
  return slopes;
}

inline void check_near(const std::vector<double>& actual, std::size_t first, const Numbers& expected,
                       double tolerance) {
  REQUIRE(actual.size() >= first + expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(actual[first + i] == doctest::Approx(static_cast<double>(expected[i])).epsilon(tolerance).scale(1));
}

/// The forward of each operation has the numbers of its definition.
inline void check_outputs(const std::vector<TensorOperation>& cases, Reference number_at) {
  for (const std::size_t width : kWidths)
    for (const TensorOperation& op : cases) {
      CAPTURE(static_cast<int>(op.function));
      const Case c = case_of(op, width);
      CAPTURE(c.trial.name);
      REQUIRE(cpu::has_kernel(c.trial.op));
      const auto kernels = cpu::make_kernels(width);
      const ComputedTrial computed(*kernels, c.trial, c.data);
      for (std::int64_t part = 0; part < c.parts; ++part)
        check_near(computed.output, static_cast<std::size_t>(part * numbers_of(c.whole.shape)),
                   output_of(c.whole, operands_of(c, part), number_at), width == 4 ? 1e-5 : 1e-13);
    }
}

/// The gradients of each operation are finite differences of its definition.
inline void check_gradients(const std::vector<TensorOperation>& cases, Reference number_at) {
  for (const TensorOperation& op : cases) {
    CAPTURE(static_cast<int>(op.function));
    const Case c = case_of(op, 8);
    CAPTURE(c.trial.name);
    const auto kernels = cpu::make_kernels(8);
    ComputedTrial computed(*kernels, c.trial, c.data);
    const auto d_inputs = computed.input_gradient();
    const std::vector<double> d_weights = computed.weight_gradient();
    Numbers sum;
    std::size_t input = 0;
    for (std::size_t k = 0; k < op.operands.size(); ++k) {
      if (op.operands[k].source == OperandSource::Constant) continue;
      const bool is_input = op.operands[k].source == OperandSource::Input;
      for (std::int64_t part = 0; part < c.parts; ++part) {
        const Numbers slopes = slopes_of(c, part, k, number_at);
        if (is_input) check_near(d_inputs[input], static_cast<std::size_t>(part) * slopes.size(), slopes, 1e-9);
        sum.resize(is_input ? sum.size() : slopes.size());
        for (std::size_t i = 0; i < slopes.size() && !is_input; ++i) sum[i] += slopes[i];
      }
      input += is_input;
    }
    check_near(d_weights, 0, sum, 1e-9);
  }
}

/// Gradients are added to what is there, and equal calls give equal bits.
inline void check_added(const std::vector<TensorOperation>& cases) {
  for (const TensorOperation& op : cases) {
    CAPTURE(static_cast<int>(op.function));
    const Case c = case_of(op, 8);
    const auto kernels = cpu::make_kernels(8);
    const TrialResult once = compute(*kernels, c.trial, c.data), shifted = compute(*kernels, c.trial, c.data, 3);
    CHECK(once == shifted);
    ComputedTrial computed(*kernels, c.trial, c.data);
    const auto added = computed.input_gradient(true, 3);
    for (std::size_t i = 0; i < added.size(); ++i)
      for (std::size_t n = 0; n < added[i].size(); ++n)
        CHECK(added[i][n] == doctest::Approx(3 + once.d_inputs[i][n]).epsilon(1e-12));
  }
}

/// The functions of the cases, each once.
inline std::set<TensorFunction> functions_of(const std::vector<TensorOperation>& cases) {
  std::set<TensorFunction> functions;
  for (const TensorOperation& op : cases) functions.insert(op.function);
  return functions;
}

}  // namespace stagecraft::tensor_test
