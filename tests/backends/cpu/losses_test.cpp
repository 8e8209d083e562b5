#include <cmath>

#include <doctest/doctest.h>

#include "sim/core/diagnostic.hpp"
#include "tests/backends/cpu/trial.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::losses_test {
using namespace stagecraft::test;

namespace {

Trial loss(OperationKind kind, int rows, int columns, std::int64_t samples, double scale) {
  Trial t{std::string(to_text(kind)), {}, samples, {columns, kind == OperationKind::CrossEntropy ? 1 : columns}, scale};
  t.op.kind = kind;
  t.op.rows = rows;
  t.op.columns = columns;
  return t;
}

struct LossAndGradient {
  double loss;
  std::vector<double> gradient;
};

LossAndGradient run(const Trial& t, std::vector<double> computed, std::vector<double> targets, std::size_t width = 8) {
  const auto kernels = cpu::make_kernels(width);
  const std::size_t count = computed.size();
  ComputedTrial device(*kernels, t, {width, {std::move(computed), std::move(targets)}, {}, std::vector<double>(count)});
  REQUIRE(device.output.size() == 1);
  CHECK(device.input_gradient()[0] == device.saved());
  return {device.output[0], device.input_gradient()[0]};
}

std::string embed(double word) {
  Trial t{"embedding", {}, 1, {1}};
  t.op.kind = OperationKind::Embedding;
  t.op.columns = 2;
  t.op.inner = 3;
  const auto kernels = cpu::make_kernels(8);
  return input_error_of([&] { ComputedTrial(*kernels, t, {8, {{word}}, std::vector<double>(16), {0, 0}}); });
}

}  // namespace

TEST_CASE("cross entropy by hand") {
  // softmax(0, ln 3) = 1/4, 3/4: the losses are ln 4 and ln 4/3. One sample of two rows, then two samples of one.
  const double third = std::log(3.0);
  for (const auto& [rows, samples] : {std::pair{2, 1}, std::pair{1, 2}}) {
    const LossAndGradient result =
        run(loss(OperationKind::CrossEntropy, rows, 2, samples, 0.5), {0, third, 0, third}, {0, 1});
    CHECK(result.loss == doctest::Approx(0.5 / rows * std::log(16.0 / 3)).epsilon(1e-15));
    const double unit = 0.5 / rows / 4;
    const double expected[] = {-3 * unit, 3 * unit, unit, -unit};
    for (std::size_t i = 0; i < 4; ++i) CHECK(result.gradient[i] == doctest::Approx(expected[i]).epsilon(1e-15));
  }
}

TEST_CASE("cross entropy of large numbers does not overflow") {
  for (const std::size_t width : kWidths) {
    const LossAndGradient result = run(loss(OperationKind::CrossEntropy, 1, 3, 1, 1), {1000, 0, -1000}, {1}, width);
    CHECK(result.loss == 1000);
    CHECK(result.gradient == std::vector<double>{1, -1, 0});
  }
}

TEST_CASE("mean and sum of squares by hand") {
  // Differences 1, -2, 3, 0: squares 1, 4, 9, 0.
  const std::vector<double> y = {1, 0, 5, 7}, t = {0, 2, 2, 7};
  for (const std::size_t width : kWidths) {
    const LossAndGradient mean = run(loss(OperationKind::MeanSquare, 2, 1, 2, 0.5), y, t, width);
    CHECK(mean.loss == 0.5 * (5.0 / 2 + 9.0 / 2));
    CHECK(mean.gradient == std::vector<double>{0.5, -1, 1.5, 0});
    const LossAndGradient sum = run(loss(OperationKind::SumSquare, 2, 1, 2, 1), y, t, width);
    CHECK(sum.loss == 14);
    CHECK(sum.gradient == std::vector<double>{2, -4, 6, 0});
  }
}

TEST_CASE("words and classes that do not exist are errors of the input") {
  CHECK(embed(0) == "nothing");
  CHECK(embed(2) == "nothing");
  CHECK(embed(3) == "0: : embedding 1x2 of 3 words: word 3 is not known. [Use whole numbers from 0 to 2.]\n");
  CHECK(embed(-1).find("word -1 is not known") != std::string::npos);
  CHECK(embed(0.5).find("word 0.5 is not known") != std::string::npos);
  CHECK(embed(std::nan("")).find("word nan is not known") != std::string::npos);
  CHECK_THROWS_AS(run(loss(OperationKind::CrossEntropy, 1, 3, 1, 1), {0, 0, 0}, {3}), InputError);
  CHECK_THROWS_AS(run(loss(OperationKind::CrossEntropy, 1, 3, 1, 1), {0, 0, 0}, {-1}), InputError);
}

}  // namespace stagecraft::losses_test
