// How far predictions are off, against no prediction at all. What is predicted comes from the executor, and what it is
// compared with from the version that the backward read, so that a wrong direction or horizon shows. Which side of 1 an
// error is on, and which of two is larger, was set beforehand from a prototype that drew other random numbers; its
// figures themselves are of other starts and samples, and are no limits here.

#include <doctest/doctest.h>

#include <limits>

#include <fmt/core.h>

#include "tests/convergence/predicted.hpp"

namespace stagecraft::errors_test {
namespace {

constexpr int kUpdates = 1000;

Training momentum(double rate) { return test::training_of(OptimizerKind::Momentum, rate, "teacher"); }

double shown(const std::string& what, double error) {
  MESSAGE(fmt::format("{}: error {:.2f}", what, error));
  return error;
}

double length(const std::vector<double>& a) { return test::distance(a, std::vector<double>(a.size())); }

}  // namespace

// With W(f) - W(f - 1) = -d(f) and s updates until the backward the paper has W(f) - s d(f), the last step again and
// again. The released code goes s + 1 steps of the momentum after one more equal gradient:
// W(f) - (s + 1) (d(f) + mu (d(f) - d(f - 1))). A step from the versions is off by the rounding of W, half an epsilon;
// there are at most s + 1 of them times 1 + 2 mu < 3, and the prediction is rounded itself.
TEST_CASE("momentum: the prediction is the last step, times the updates before the backward") {
  constexpr int kDepth = 8;
  for (const bool released : {false, true}) {
    CAPTURE(released);
    const auto first = test::first_stage({"pipeoptim", released}, momentum(0.002), 100, kDepth);
    const double mu = released ? momentum(0.002).optimizer.momentum : 0, steps = kDepth - 1 + released;
    int looked_at = 0;
    for (const auto& [f, b] : first.backward) {
      if (f < 2) continue;
      const auto v = static_cast<std::size_t>(f);
      CHECK(b == f + kDepth - 1);
      std::vector<double> predicted = first.versions[v];
      for (std::size_t i = 0; i < predicted.size(); ++i) {
        const double step = first.versions[v - 1][i] - first.versions[v][i],
                     before = first.versions[v - 2][i] - first.versions[v - 1][i];
        predicted[i] -= steps * (step + mu * (step - before));
      }
      CHECK(test::distance(predicted, first.predictions.at(f)) <
            3 * (steps + 1) * std::numeric_limits<double>::epsilon() * length(first.versions[v]));
      ++looked_at;
    }
    CHECK(looked_at == 100 - (kDepth - 1) - 2);
  }
}

TEST_CASE("momentum: a prediction is better than none, and worse at larger rates") {
  const double slow = shown("rate 0.0005", test::prediction_error(momentum(0.0005), kUpdates)),
               middle = shown("rate 0.002", test::prediction_error(momentum(0.002), kUpdates)),
               fast = shown("rate 0.005", test::prediction_error(momentum(0.005), kUpdates));
  CHECK(slow < middle);
  CHECK(middle < fast);
  CHECK(fast < 1);
}

TEST_CASE("adam: a prediction is better than none, and worse at the larger rate") {
  const auto error = [](double rate) {
    const Training training = test::training_of(OptimizerKind::AdamW, rate, "glyph");
    return shown(fmt::format("rate {}", rate), test::prediction_error(training, kUpdates));
  };
  const double slow = error(0.0003), fast = error(0.003);
  CHECK(slow < fast);
  CHECK(fast < 1);
}

TEST_CASE("the error grows with the depth, and from twelve stages on no prediction is better") {
  double last = 0;
  for (const int depth : {2, 4, 6, 8}) {
    const std::string what = fmt::format("{} stages", depth);
    const double error = shown(what, test::prediction_error(momentum(0.002), kUpdates, depth));
    CHECK_MESSAGE(error > last, what);
    last = error;
  }
  CHECK(last < 1);
  CHECK(shown("12 stages", test::prediction_error(momentum(0.002), kUpdates, 12)) > 1);
}

// It has the lower loss all the same: as a proxy for the loss the error will not do.
TEST_CASE("the released code predicts worse than none at large rates") {
  CHECK(shown("released, rate 0.005", test::prediction_error(momentum(0.005), kUpdates, 8, true)) > 1);
}

}  // namespace stagecraft::errors_test
