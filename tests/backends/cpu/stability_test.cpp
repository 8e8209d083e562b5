// The largest stable learning rate on a quadratic of curvature one, with gradients that are tau updates old. Without
// momentum it is 2 sin(pi / (4 tau + 2)); with the whole road through update() and predict() for a single weight.

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "tests/backends/cpu/optimizer_state.hpp"
#include "tests/support/reference.hpp"

namespace stagecraft::stability_test {
namespace {

struct Case {
  double momentum = 0;
  int tau = 0;
  bool predicts = false, compensates = false;
};

/// Whether the weight grows: its sum of squares over the last quarter of the updates against the second one.
bool grows(const Case& c, double rate) {
  constexpr int kUpdates = 4000;
  OptimizerRule rule;
  rule.kind = OptimizerKind::Momentum;
  rule.momentum = c.momentum;
  rule.learning_rate = rate;
  const auto tau = static_cast<std::size_t>(c.tau);
  test::Trained<double> trained({1.0});
  std::vector<double> forward;  // Weights that each forward saw.
  double early = 0, late = 0;
  for (int update = 0; update < kUpdates; ++update) {
    forward.push_back(c.predicts ? trained.predicted(rule, Direction::Optimizer, c.tau)[0] : trained.weights[0]);
    const double gradient = forward[forward.size() > tau ? forward.size() - 1 - tau : 0];
    trained.update(rule, {gradient}, {.delay = c.tau, .spike_compensation = c.compensates});
    const double square = trained.weights[0] * trained.weights[0];
    if (square > 1e100) return true;
    if (update >= kUpdates / 4 && update < kUpdates / 2) early += square;
    if (update >= 3 * kUpdates / 4) late += square;
  }
  return late > early;
}

double largest_stable_rate(const Case& c) {
  double stable = 0, unstable = 4.5;
  while (unstable - stable > 4e-6) (grows(c, (stable + unstable) / 2) ? unstable : stable) = (stable + unstable) / 2;
  return stable;
}

/// Half a unit of the fourth decimal, and the last step of the bisection.
constexpr double kFourDecimals = 0.5e-4 + 1e-5;

}  // namespace

TEST_CASE("without momentum and prediction the limit is 2 sin(pi / (4 tau + 2))") {
  for (const int tau : {0, 1, 2, 3, 5, 7, 15}) {
    CAPTURE(tau);
    const double limit = 2 * std::sin(std::numbers::pi / (4 * tau + 2));
    CHECK(std::abs(largest_stable_rate({.tau = tau}) - limit) < kFourDecimals);
  }
}

TEST_CASE("limits with momentum, prediction and spike compensation equal the reference") {
  int rows = 0;
  for (const test::ReferenceRow& row : test::reference_rows("stability_limits.csv")) {
    Case c{.momentum = row.number("momentum"), .tau = row.integer("tau")};
    CAPTURE(row.line);
    ++rows;
    CHECK(std::abs(largest_stable_rate(c) - row.number("plain")) < kFourDecimals);
    c.predicts = true;
    CHECK(std::abs(largest_stable_rate(c) - row.number("predicted")) < kFourDecimals);
    c.compensates = true;
    CHECK(std::abs(largest_stable_rate(c) - row.number("both")) < kFourDecimals);
    c.predicts = false;
    CHECK(std::abs(largest_stable_rate(c) - row.number("compensated")) < kFourDecimals);
  }
  CHECK(rows >= 10);
}

}  // namespace stagecraft::stability_test
