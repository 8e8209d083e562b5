#pragma once

#include <string>
#include <vector>

#include "sim/schedule/builder.hpp"

namespace stagecraft {

/// What an automatic schedule knows of a rank: times and memory of a micro-batch on each of its chunks.
struct RankCost {
  double forward = 0, input_gradient = 0, weight_gradient = 0;
  double memory = 1;  ///< Half is freed by the input gradient, half by the weight gradient.
};

/// The costs of all ranks. Times are in the common unit of the passes (CommonUnit).
struct RankCosts {
  std::vector<std::vector<RankCost>> ranks;  ///< [rank][chunk]
  double hop = 0;  ///< The longest that a message takes between two stages: latency and bytes; 0 without a cluster.
};

/// Memory is the stash as a share of the largest stash, or one everywhere when the plan has none.
RankCosts rank_costs(const ScheduleInput&);

/// The option `memory` of schedules that are found from the costs.
config::Field memory_field(std::string fallback);

}  // namespace stagecraft
