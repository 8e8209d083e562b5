#include "sim/schedule/steps.hpp"

#include <numeric>

namespace stagecraft {

KeptAndDue KeptAndDue::of(Step step) {
  switch (step) {
    case Step::Takes:
      return {1, 0, 0, 1, 1};
    case Step::Frees:
      return {-1, 0, 0, -1, -1};
    case Step::Due:
      return {-1, 1, 1, 0, 0};
    case Step::Free:
      return {0, -1, 0, -1, 0};
    case Step::Busy:
      break;
  }
  return {};
}

std::vector<int> in_order(const std::vector<int>& times) {
  const int last = times.empty() ? 0 : *std::max_element(times.begin(), times.end());
  std::vector<int> place(static_cast<std::size_t>(last) + 2, 0);
  for (const int t : times) ++place[static_cast<std::size_t>(t) + 1];
  std::partial_sum(place.begin(), place.end(), place.begin());
  std::vector<int> order(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) order[place[times[i]]++] = static_cast<int>(i);
  return order;
}

}  // namespace stagecraft
