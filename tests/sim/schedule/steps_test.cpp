// The step tree of a rank compared with a loop over all steps.

#include <doctest/doctest.h>

#include <random>

#include "sim/schedule/v_shape/patterns.hpp"
#include "sim/schedule/v_shape/steps.hpp"

namespace stagecraft::steps_test {
namespace {

constexpr StepState kSteps[] = {StepState::Free, StepState::Busy, StepState::Takes, StepState::Frees, StepState::Due};

/// Activations alive after each step. With `free_steps_free` a free step runs a weight gradient if one is due.
std::vector<int> alive(const std::vector<StepState>& steps, bool free_steps_free) {
  std::vector<int> counts;
  int now = 0, due = 0;
  for (const StepState step : steps) {
    now += step == StepState::Takes ? 1 : step == StepState::Frees ? -1 : 0;
    due += step == StepState::Due;
    if (step == StepState::Free && free_steps_free && due > 0) --due, --now;
    counts.push_back(now);
  }
  return counts;
}

}  // namespace

TEST_CASE("steps: the peak and its last step are known after every change") {
  std::mt19937 random(3);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<StepState> steps(1 + below(100));
    for (StepState& step : steps) step = kSteps[below(5)];
    StepTree<Activations> tree(steps);
    StepTree<ActivationsAndDue> due(steps);
    for (int change = 0; change < 20; ++change) {
      const std::size_t place = below(steps.size());
      steps[place] = kSteps[below(5)];
      tree.set(static_cast<int>(place), {steps[place]});
      due.set(static_cast<int>(place), {steps[place]});
      const std::vector<int> simple = alive(steps, false), with_due = alive(steps, true);
      // Padding after the last step has no effect, so the activations at the end count too.
      CHECK(due.whole().peak() == std::max(*std::max_element(with_due.begin(), with_due.end()), with_due.back()));
      const int end = static_cast<int>(below(steps.size() + 1)), activations = static_cast<int>(below(5)) - 1;
      int last = -1;
      for (int i = 0; i < end; ++i)
        if (simple[i] >= activations) last = i;
      CHECK(tree.last_with(activations, end) == last);
    }
  }
}

TEST_CASE("steps: two changes at once may cross the border of a block") {
  StepTree<Activations> row(std::vector<StepState>(20, StepState::Free));
  for (int first = 0; first < 19; ++first) {
    row.set(first, {StepState::Takes, StepState::Takes});
    CHECK(row.whole().highest == 2);
    CHECK_FALSE(row.free(first + 1));
    row.set(first, {StepState::Free, StepState::Free});
    CHECK(row.whole().highest == 0);
  }
}

TEST_CASE("ops by time keep their order within a step") {
  CHECK(in_order({3, 0, 3, 1, 0}) == std::vector<int>{1, 4, 3, 0, 2});
  CHECK(in_order({}).empty());
}

// On one rank F0, F1, I1 and I0 begin one after the other. With the pattern F0 0, F1 1, I1 2, W1 3, I0 4, W0 5 they
// take the first steps 0, 1, 2 and 4: two activations at most. Where the rank runs F1 first in its six steps, F1 of
// micro-batch 0 comes at 6, I1 at 8, W1 at 9: F0 of micro-batches 0 and 1 at 1 and 7, F1 at 6: three.
TEST_CASE("the peak of activations of repeated patterns equals the one by hand") {
  CHECK(peak_of({VPattern{0, 1, 2, 4, 3, 5}}, 1) == 2);
  CHECK(peak_of({VPattern{0, 1, 2, 4, 3, 5}}, 9) == 2);
  CHECK(peak_of({VPattern{1, 0, 2, 4, 3, 5}}, 9) == 3);
  CHECK(peak_of({VPattern{1, 0, 2, 4, 3, 5}}, 1) == 2);
}

}  // namespace stagecraft::steps_test
