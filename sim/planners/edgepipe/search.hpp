#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/core/diagnostic.hpp"
#include "sim/planners/edgepipe/problem.hpp"

namespace stagecraft::edgepipe {

/// Whether some chain of allowed stages runs all layers. Adds the cuts that it looked at to `states`.
///
///   R(0) = {0},  R(S + 1_u) contains the ends of the stages of u that begin in R(S) and in the starts of u
///
/// where S counts the devices of each kind in use and R(S) is the set of cuts that chains of them reach: one bit each.
/// A farther cut is not always better, because cuts differ in their messages; so the search keeps all cuts.
bool can_finish(const ChainProblem&, const Allowed&, std::int64_t& states);

/// R(S) for each S, one after the other, without the cuts from which the remaining devices cannot run the rest.
Cuts cuts_on_the_way(const ChainProblem&, const Allowed&);

/// Which seconds are summed along a chain.
enum class Sum { Latency, Hops };

struct Summed {
  Chain chain;
  double sum;
};

/// The chain of allowed stages that runs all layers with the least sum, and of those one with the fewest stages;
/// nothing when there is none, or none whose sum is at most `ceiling`. Adds the partial chains that it kept to
/// `states`. Infeasible when they are too many to keep.
///
///   D(S + 1_u, to, u) = min over from, v of D(S, from, v) + hop(from, v, u) + compute of u
///
/// Only the bandwidth of the machine v at the end matters, and only where a faster link costs more.
std::optional<Summed> least_sum(const ChainProblem&, const Allowed&, Sum, double ceiling, std::int64_t& states);

/// Lower bound on the sum of a chain of allowed stages: quick, because a chain may use more machines than there are, at
/// a price. Infinite when no such chain exists. `ceiling`: a sum that is known to be enough, or infinity.
double sum_from_below(const ChainProblem&, const Allowed&, Sum, double ceiling);

enum class Objective {
  Bottleneck,  ///< Least period; every link carries both directions at once and none is shared (PipeEdge).
  Latency,     ///< Least time of one item through all stages.
  Finite,      ///< Least time of `items` items: latency + (items - 1) * period.
  Shared,      ///< Least period when all hops share one medium.
};

struct ChainPlan {
  Chain chain;
  double period;        ///< Seconds between two items in the steady state.
  double least_period;  ///< Period of the chain with the least period.
  std::int64_t states;  ///< Partial chains that the search visited.
};

/// The exact optimum over all subsets and orders of the devices and all cuts; nothing when no chain fits into memory
/// and is connected. Of chains with the least period it is one of the least latency, and of those one with the fewest
/// stages; on a shared medium one of the least time there. Infeasible when the search itself is too large.
std::optional<ChainPlan> search(const ChainProblem&, Objective, int items);

/// Why no chain exists, as far as one constraint can be named. The diagnostic has no position.
Diagnostic why_none(const ChainProblem&, const std::vector<std::string>& layers);

}  // namespace stagecraft::edgepipe
