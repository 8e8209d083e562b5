#pragma once

#include <optional>

#include "sim/run/run.hpp"
#include "sim/schedule/builder.hpp"

namespace stagecraft {

/// One iteration of an order again and again on `ideal`, with everything else of the scenario: what a schedule that is
/// searched for is chosen by. Of `prepared`, what comes before the schedule. Nothing when the order cannot run.
std::optional<Played> play(const Schedule& iteration, const Prepared&, const Scenario&);

}  // namespace stagecraft
