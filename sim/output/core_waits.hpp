#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"

namespace stagecraft {

/// How long the computations of one iteration of a real run could have run and had no core, in seconds.
struct CoreWaits {
  double waited = 0;     ///< Sum over all devices.
  double simulated = 0;  ///< Such waits in the simulation, where that shares cores among threads.
  double computing = 0;  ///< Sum of the times of all computations.
  double marked = 0;     ///< Time of the computations that waited for more than 1 % of it, on the device with most of
                         ///< it; the wait, where that was longer.
};

/// One for each iteration from the second one on; empty where the run does not tell.
std::vector<CoreWaits> core_waits(const Program&, const Timeline& simulated, const Timeline& measured);

/// Why waits leave no verdict sure on a median iteration of `period` seconds; empty: they do not.
///
/// Waits are no longer than what marked computations take (but for 1 % of the others). As long as that is at most 5 %
/// of most iterations, which is the tolerance of the verdict, waits do not decide it. Where the simulation shares
/// cores, threads are expected to wait, and only what they wait longer than simulated counts.
std::string core_waits_doubt(const std::vector<CoreWaits>&, double period);

/// A line of text with the median waits; empty where there are none.
std::string core_waits_text(const std::vector<CoreWaits>&);

}  // namespace stagecraft
