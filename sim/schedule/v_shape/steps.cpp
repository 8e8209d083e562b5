// How a step changes the activations of a rank if free steps run weight gradients, for blocks.cpp; and ops sorted by
// their steps, for `1f1b-v` and `layerpipe`.

#include "sim/schedule/v_shape/steps.hpp"

#include <numeric>

namespace stagecraft {

ActivationsAndDue ActivationsAndDue::from_step(StepState step) {
  switch (step) {
    case StepState::Takes:
      return {1, 0, 0, 1, 1};
    case StepState::Frees:
      return {-1, 0, 0, -1, -1};
    case StepState::Due:
      return {-1, 1, 1, 0, 0};
    case StepState::Free:
      return {0, -1, 0, -1, 0};
    case StepState::Busy:
      break;
  }
  return {};
}

std::vector<int> in_order(const std::vector<int>& times) {
  const int last = times.empty() ? 0 : *std::max_element(times.begin(), times.end());
  std::vector<int> place(last + 2, 0);
  for (const int t : times) ++place[t + 1];
  std::partial_sum(place.begin(), place.end(), place.begin());
  std::vector<int> order(times.size());
  for (int i = 0; i < std::ssize(times); ++i) order[place[times[i]]++] = i;
  return order;
}

}  // namespace stagecraft
