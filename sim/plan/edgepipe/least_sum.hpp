#pragma once

#include <cstdint>
#include <optional>

#include "sim/plan/edgepipe/allowed.hpp"

namespace stagecraft::edgepipe {

/// What is added up along a chain.
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
/// Of the machine v at the end only its bandwidth matters, and only where a faster link costs more.
std::optional<Summed> least_sum(const Problem&, const Allowed&, Sum, double ceiling, std::int64_t& states);

/// No chain of allowed stages has a smaller sum: quick, where machines may be used more often than they are there, at a
/// price. Infinite where no such chain ends. `ceiling`: what is known to be enough, or infinity.
double sum_from_below(const Problem&, const Allowed&, Sum, double ceiling);

}  // namespace stagecraft::edgepipe
