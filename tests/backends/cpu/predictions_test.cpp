// Predictions against the golden file: weights after 0 to 3 steps, predicted 0 to 3 updates ahead in four flavours.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/backends/cpu/optimizer_state.hpp"
#include "tests/support/reference.hpp"

namespace stagecraft::predictions_test {
namespace {

// The file does not say them: they follow from its rows of plain momentum 0.9 with s = 0.
const std::vector<double> kGradients[] = {{0.5, -1, 0.25}, {0.1, 0.2, -0.3}, {-0.4, 0.6, 0.05}};

const std::map<std::string, OptimizerKind> kKinds = {{"sgdm", OptimizerKind::Momentum},
                                                     {"adam", OptimizerKind::Adam},
                                                     {"adamw", OptimizerKind::AdamW},
                                                     {"rmsprop", OptimizerKind::RmsProp}};
const std::map<std::string, Direction> kFlavours = {{"paper", Direction::Optimizer},
                                                    {"code", Direction::NextMomentum},
                                                    {"geo", Direction::Geometric},
                                                    {"spec", Direction::Momentum}};

std::vector<double> computed(const test::ReferenceRow& row) {
  OptimizerRule rule;
  rule.kind = kKinds.at(row.text("optimizer"));
  rule.learning_rate = row.number("rate");
  rule.weight_decay = row.number("decay");
  if (rule.kind == OptimizerKind::RmsProp) rule.momentum = 0;
  test::Trained<double> trained({1, -2, 0.5});
  for (int step = 0; step < row.integer("steps"); ++step) trained.update(rule, kGradients[step]);
  return trained.predicted(rule, kFlavours.at(row.text("flavor")), row.integer("ahead"));
}

}  // namespace

TEST_CASE("predictions equal the golden file") {
  int numbers = 0;
  double worst = 0;
  std::map<std::string, int> rows;
  for (const test::ReferenceRow& row : test::reference_rows("weight_predictions.csv")) {
    CAPTURE(row.line);
    const std::vector<double> ours = computed(row);
    for (std::size_t i = 0; i < 3; ++i, ++numbers) {
      const double theirs = row.number("w" + std::to_string(i)), error = std::abs(ours[i] - theirs) / std::abs(theirs);
      CHECK(error < 1e-14);
      worst = std::max(worst, error);
    }
    ++rows[row.text("optimizer") + " " + row.text("flavor")];
  }
  MESSAGE(numbers << " numbers, the largest relative difference is " << worst);
  CHECK(rows.size() == kKinds.size() * kFlavours.size());
  CHECK(numbers >= 768);
}

}  // namespace stagecraft::predictions_test
