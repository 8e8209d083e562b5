#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "backends/real/stage_net.hpp"

namespace stagecraft::real {

/// Weights of a device from the weights of the undivided stage; add_part() is the way back.
std::vector<double> part_of_weights(const StageNet& part, const StageNet& whole, const std::vector<double>& weights);
void add_part(const StageNet& part, const StageNet& whole, const std::vector<double>& weights,
              std::vector<double>& whole_weights);

/// Weights at the start, each operation's drawn for itself: the same whatever the plan. `whole`: from {-1, 0, 1}. An
/// operation with more than `distinct` weights repeats the first ones.
std::vector<double> initial_weights(const StageNet&, const Workload&, bool whole,
                                    std::int64_t distinct = std::numeric_limits<std::int64_t>::max());

}  // namespace stagecraft::real
