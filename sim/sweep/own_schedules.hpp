#pragma once

#include <vector>

#include "sim/experiment/own_orders.hpp"
#include "sim/sweep/points.hpp"

namespace stagecraft {

/// Gives each point whose `run.schedule` is the name of one of these schedules the order of that schedule on its plan,
/// as `Point::orders`. Throws what is wrong with an order. A point without a plan says so when it runs.
void add_own_orders(const Sweep&, const std::vector<OwnSchedule>&, std::vector<Point>&);

}  // namespace stagecraft
