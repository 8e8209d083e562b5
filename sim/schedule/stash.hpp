#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/actions.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft {

/// What takes memory on a rank, in any unit. There is no time here: memory is taken and given back op by op.
struct StashModel {
  double each_stash = 1;                ///< What one micro-batch keeps of a stage from F to B.
  std::vector<double> stash = {};       ///< Of each stage, where they differ.
  double freed_at_input = 0;            ///< Share of it that I gives back; W gives the rest.
  double kept_for_recompute = 0;        ///< Share that stays from F to R, where the order recomputes.
  double message = 0;                   ///< A message, from RECV to the op that uses it and from its op to SEND.
  double resident = 0;                  ///< Weights, gradients and optimizer of a rank.
  std::optional<double> capacity = {};  ///< Of a rank.
};

/// The highest point of one rank.
struct StashPeak {
  double size = 0;
  int index = -1;  ///< The action there.
};

/// O(actions).
std::vector<StashPeak> stash_peaks(const ActionTable&, const Plan&, const StashModel&);
/// Level 7: the first action of each rank that does not fit in the capacity. O(actions).
std::vector<ScheduleProblem> check_stash(const ActionTable&, const Plan&, const StashModel&);

}  // namespace stagecraft
