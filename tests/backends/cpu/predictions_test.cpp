// Predictions against the golden file: weights after 0 to 3 steps, predicted 0 to 3 updates ahead in four flavours.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "tests/backends/cpu/optimizer_state.hpp"
#include "tests/support/checked.hpp"

using namespace stagecraft;

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

std::vector<double> computed(const std::vector<std::string>& cells) {
  OptimizerRule rule;
  rule.kind = kKinds.at(cells[0]);
  rule.learning_rate = std::stod(cells[1]);
  rule.weight_decay = std::stod(cells[2]);
  if (rule.kind == OptimizerKind::RmsProp) rule.momentum = 0;
  test::Trained<double> trained({1, -2, 0.5});
  for (int step = 0; step < std::stoi(cells[3]); ++step) trained.update(rule, kGradients[step]);
  return trained.predicted(rule, kFlavours.at(cells[4]), std::stoi(cells[5]));
}

}  // namespace

TEST_CASE("predictions equal the golden file") {
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  const auto lines = split(read_file(folder + "/weights/golden_predictions.csv"), '\n');
  REQUIRE(trim(lines.front()) == "opt,lr,wd,steps_done,flavor,s,w0,w1,w2");
  int numbers = 0;
  double worst = 0;
  std::map<std::string, int> rows;
  for (std::size_t l = 1; l < lines.size(); ++l) {
    if (trim(lines[l]).empty()) continue;
    const auto cells = split(trim(lines[l]), ',');
    REQUIRE(cells.size() == 9);
    CAPTURE(lines[l]);
    const std::vector<double> ours = computed(cells);
    for (std::size_t i = 0; i < 3; ++i, ++numbers) {
      const double theirs = std::stod(cells[6 + i]), error = std::abs(ours[i] - theirs) / std::abs(theirs);
      CHECK(error < 1e-14);
      worst = std::max(worst, error);
    }
    ++rows[cells[0] + " " + cells[4]];
  }
  MESSAGE(numbers << " numbers, the largest relative difference is " << worst);
  CHECK(rows.size() == kKinds.size() * kFlavours.size());
  CHECK(numbers >= 768);
}
