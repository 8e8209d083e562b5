#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// The kinds of message streams (single, pair, direction) with which no ranks wait for each other forever when every op
/// receives right before it and sends right after it, as some runtimes do. lower() posts receives early, so its
/// programs never block. Where all stages have equally many replicas, only the first chain of replicas is checked.
/// Returns nothing for plans that are no chain and for replicas that take turns.
std::optional<std::vector<std::string>> safe_streams(const Schedule&, Plan, int iterations);

}  // namespace stagecraft
