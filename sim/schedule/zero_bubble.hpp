#pragma once

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

/// The automatic zero-bubble schedule of one chunk on each rank: as many forwards ahead as `memory` times the ranks'
/// number of activations allow, then one forward and one input gradient a round, with weight gradients where they fill
/// a gap or free memory. The best, by the longest that a rank is busy or waiting, of eight ways to break ties
/// (Qi et al., Zero Bubble, ICLR 2024, section 3.1). O(micro-batches * ranks).
Schedule automatic_zero_bubble(const ScheduleInput&, std::string_view schedule, double memory);
config::Field memory_field(std::string fallback);

}  // namespace stagecraft
