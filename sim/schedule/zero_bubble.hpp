#pragma once

#include <string_view>

#include "sim/schedule/builder.hpp"

namespace stagecraft {

/// The automatic zero-bubble schedule of one chunk on each rank: as many forwards ahead as `memory` times the ranks'
/// number of activations allow, then one forward and one input gradient a round, with weight gradients where they fill
/// a gap or free memory. The best of eight ways to break ties, by the longest time that a rank is busy or waiting
/// (Qi et al., Zero Bubble, ICLR 2024, section 3.1). O(micro-batches * ranks).
Schedule automatic_zero_bubble(const ScheduleInput&, std::string_view schedule, double memory);

}  // namespace stagecraft
