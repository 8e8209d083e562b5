#pragma once

#include <string>
#include <vector>

#include "sim/schedule/builder.hpp"

namespace stagecraft {

/// What an automatic schedule knows of a rank: seconds and memory of a micro-batch on each of its chunks.
struct RankCost {
  Seconds forward, input_gradient, weight_gradient;
  double memory = 1;  ///< Half is freed by the input gradient, half by the weight gradient.
};

/// [rank][chunk]. Memory is the stash, or one everywhere when the plan has none.
std::vector<std::vector<RankCost>> rank_costs(const ScheduleInput&);

/// The longest that a message takes between two stages: latency and bytes; nothing without a cluster.
Seconds slowest_hop(const ScheduleInput&);

/// The option `memory` of schedules that are found from the costs.
config::Field memory_field(std::string fallback);

}  // namespace stagecraft
