#include <algorithm>
#include <bit>
#include <cstdint>

#include <doctest/doctest.h>

#include "backends/real/formulas/elementary.hpp"
#include "tests/backends/cpu/trial.hpp"

namespace stagecraft::bits_test {
using namespace stagecraft::test;

namespace {

Trial elementwise(OperationKind kind, int columns) {
  Trial t{std::string(to_text(kind)), {}, 1, {columns}};
  t.op.kind = kind;
  t.op.columns = columns;
  return t;
}

const OperationKind kElementwise[] = {OperationKind::Relu, OperationKind::Tanh, OperationKind::Gelu};

/// Numbers of all sizes, in the type of the kernels.
std::vector<double> some_numbers(std::size_t width) {
  std::vector<double> numbers = {0, -0.0, 1e-30, 0.1, -0.3, 1, -1.7, 5, -9.2, 30, -50, 1000};
  if (width == 4)
    for (double& x : numbers) x = static_cast<double>(static_cast<float>(x));
  return numbers;
}

/// What a kernel of this kind makes of one number: its output, and its gradient for a gradient of one.
struct Pair {
  double value, slope;
};
std::vector<Pair> applied(real::Kernels& kernels, OperationKind kind, const std::vector<double>& x, std::size_t shift) {
  const Trial t = elementwise(kind, static_cast<int>(x.size()));
  ComputedTrial device(kernels, t, {kernels.width(), {x}, {}, std::vector<double>(x.size(), 1)}, shift);
  const std::vector<double> slopes = device.input_gradient()[0];
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < x.size(); ++i) pairs.push_back({device.output[i], slopes[i]});
  return pairs;
}

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

template <class T>
double by_formula(OperationKind kind, T x) {
  return static_cast<double>(kind == OperationKind::Tanh ? real::hyperbolic_tangent(x) : x < 0 ? 0 : x);
}

}  // namespace

TEST_CASE("equal calls give equal bits wherever things lie") {
  for (const Trial& t : cpu_trials())
    for (const std::size_t width : kWidths) {
      CAPTURE(t.name);
      const TrialData data = data_for(t, width);
      const auto first_kernels = cpu::make_kernels(width);
      const TrialResult first = compute(*first_kernels, t, data);
      CHECK(first == compute(*first_kernels, t, data));
      for (const std::size_t shift : {1U, 3U, 7U, 64U, 65U}) {
        const auto kernels = cpu::make_kernels(width);
        void* const gap = kernels->allocate(shift * 1000);
        CHECK(first == compute(*kernels, t, data, shift));
        kernels->release(gap, shift * 1000);
      }
    }
}

TEST_CASE("a number is treated alike at every position of every length") {
  for (const std::size_t width : kWidths)
    for (const OperationKind kind : kElementwise)
      for (const double x : some_numbers(width)) {
        const auto kernels = cpu::make_kernels(width);
        const Pair alone = applied(*kernels, kind, {x}, 0)[0];
        for (std::size_t length = 1; length < 70; ++length)
          for (const Pair& p : applied(*kernels, kind, std::vector<double>(length, x), length % 3)) {
            const bool same = same_bits(p.value, alone.value) && same_bits(p.slope, alone.slope);
            if (!same) FAIL(to_text(kind), " of ", x, " in ", length, " numbers, width ", width);
          }
      }
}

TEST_CASE("vectors and single numbers follow the same formula") {
  for (const std::size_t width : kWidths)
    for (const OperationKind kind : {OperationKind::Relu, OperationKind::Tanh}) {
      const auto kernels = cpu::make_kernels(width);
      const std::vector<double> x = some_numbers(width);
      const std::vector<Pair> results = applied(*kernels, kind, x, 0);
      for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(same_bits(results[i].value,
                        width == 4 ? by_formula(kind, static_cast<float>(x[i])) : by_formula(kind, x[i])));
    }
}

TEST_CASE("rows of layer norm and softmax do not depend on their neighbours") {
  using enum OperationKind;
  for (const std::size_t width : kWidths)
    for (const OperationKind kind : {LayerNorm, CrossEntropy})
      for (const int columns : {1, 2, 7, 8, 31, 33, 64, 70}) {
        CAPTURE(columns);
        Trial t{"row", {}, 1, {columns}, 1};
        t.op.kind = kind;
        t.op.columns = columns;
        if (kind == CrossEntropy) t.columns.push_back(1);
        const TrialData one = data_for(t, width);
        const auto kernels = cpu::make_kernels(width);
        const ComputedTrial alone(*kernels, t, one);

        Trial many = t;
        many.samples = 5;
        TrialData repeated = data_for(many, width);
        repeated.weights = one.weights;
        std::copy(one.inputs[0].begin(), one.inputs[0].end(), repeated.inputs[0].begin() + 3 * columns);
        if (kind == CrossEntropy) repeated.inputs[1][3] = one.inputs[1][0];
        const ComputedTrial among(*kernels, many, repeated);
        const auto per_sample = static_cast<std::size_t>(real::keeps(t.op).numbers);
        const std::vector<double> saved = among.saved();
        const std::vector<double> row(saved.begin() + static_cast<std::ptrdiff_t>(3 * per_sample),
                                      saved.begin() + static_cast<std::ptrdiff_t>(4 * per_sample));
        CHECK(row == alone.saved());
        if (kind == LayerNorm)
          CHECK(std::vector<double>(among.output.begin() + 3 * columns, among.output.begin() + 4 * columns) ==
                alone.output);
      }
}

TEST_CASE("equal numbers have equal probabilities") {
  for (const std::size_t width : kWidths)
    for (int columns = 1; columns < 70; ++columns) {
      Trial t{"flat", {}, 1, {columns, 1}};
      t.op.kind = OperationKind::CrossEntropy;
      t.op.columns = columns;
      const auto count = static_cast<std::size_t>(columns);
      const auto kernels = cpu::make_kernels(width);
      const ComputedTrial device(*kernels, t,
                                 {width, {std::vector<double>(count, 0.7), {0}}, {}, std::vector<double>(count)});
      const std::vector<double> gradient = device.saved();
      for (std::size_t i = 2; i < count; ++i) CHECK(gradient[i] == gradient[1]);
    }
}

}  // namespace stagecraft::bits_test
