#pragma once

#include <algorithm>
#include <vector>

#include "sim/published/predictions.hpp"

namespace stagecraft {

using MeasuredRuns = std::vector<const MeasuredRun*>;

/// Runs that a fit does not see, and the runs that it is fitted to.
struct Fold {
  MeasuredRuns left_out, others;
};

/// Each of up to 64 runs is left out alone. More runs are left out in groups, of which there are fewer the more runs
/// there are: the time of all fits is proportional to the number of runs, not to its square.
inline std::vector<Fold> folds_of(const MeasuredRuns& runs) {
  constexpr std::size_t kAlone = 64, kFewest = 4;
  const std::size_t count = runs.size() <= kAlone ? runs.size() : std::max(kFewest, kAlone * kAlone / runs.size());
  std::vector<Fold> folds(count);
  for (std::size_t f = 0; f < count; ++f)
    for (std::size_t i = 0; i < runs.size(); ++i)
      (i % count == f ? folds[f].left_out : folds[f].others).push_back(runs[i]);
  return folds;
}

}  // namespace stagecraft
