#pragma once

#include <string>
#include <vector>

#include "sim/core/json.hpp"
#include "sim/output/validation.hpp"

namespace stagecraft {

/// Time between the end of an instruction and the start of the next one, along the longest chain of each measured
/// iteration but the first: what processes need to see that they may go on. Simulated instructions have no such time.
struct PathGaps {
  double seconds = 0;  ///< In an iteration, in the mean.
  double starts = 0;   ///< Instructions of the chain in an iteration.
};

/// How far a simulation is from a run over a real network whose devices sleep where they should compute: what is left
/// is the network, and the order of work.
struct NetworkValidation {
  Validation validation;
  std::vector<Pair> iterations;  ///< Seconds from the end of the iteration before, or from the start.
  std::vector<Pair> links;       ///< Seconds of an iteration in which messages or collectives are on a link.
  std::vector<double> messages;  ///< Simulated over measured time of each message and each collective, sorted.
  std::vector<double> lateness;  ///< Seconds by which each sleep was longer than it should be, sorted.
  PathGaps gaps;
};

NetworkValidation compare_networks(const Program&, const Timeline& simulated, const Report& report,
                                   const Timeline& measured, const Cluster&);

/// The tables that `stagecraft validate --network` prints, and its verdict.
std::string to_text(const NetworkValidation&, double tolerance);

/// What it adds to validation_json(): `network`, with quantiles at these percents.
inline constexpr int kPercents[] = {0, 10, 25, 50, 75, 90, 100};
JsonObject network_json(const NetworkValidation&);

}  // namespace stagecraft
