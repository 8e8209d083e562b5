#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/core/diagnostic.hpp"
#include "sim/plan/edgepipe/problem.hpp"

namespace stagecraft::edgepipe {

enum class Objective {
  Bottleneck,  ///< Least period; every link carries both directions at once and none is shared (PipeEdge).
  Latency,     ///< Least time of one item through all stages.
  Finite,      ///< Least time of so many items: latency + (items - 1) * period.
  Shared,      ///< Least period when all hops share one medium.
};

struct Found {
  Chain chain;
  double period;        ///< Of one item in the steady state.
  double least_period;  ///< Of the best chain by that measure.
  std::int64_t states;  ///< Partial chains that were looked at.
};

/// The exact optimum over all subsets and orders of the devices and all cuts; nothing when no chain fits into memory
/// and is connected. Of chains with the least period it is one of the least latency, and of those one with the fewest
/// stages; on a shared medium one of the least time there. Infeasible when the search itself is too large.
std::optional<Found> search(const Problem&, Objective, int items);

/// Why there is none, as far as one constraint can be named. It has no place.
Diagnostic why_none(const Problem&, const std::vector<std::string>& layers);

}  // namespace stagecraft::edgepipe
