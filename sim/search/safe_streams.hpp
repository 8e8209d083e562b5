#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// Which streams of messages (single, pair, direction) an order of work needs so that no ranks wait for each other for
/// ever, when every op receives right before it and sends right behind it, as runtimes do that post messages where the
/// op stands. lower() posts receives early, so its programs never block; this is what they would meet elsewhere.
/// Replicas of equal numbers are so many equal chains. Nothing for plans that are no chain.
std::optional<std::vector<std::string>> safe_streams(const Schedule&, Plan, int iterations);

}  // namespace stagecraft
