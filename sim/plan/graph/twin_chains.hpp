#pragma once

#include <vector>

#include "sim/plan/graph/problem.hpp"

namespace stagecraft::graph {

/// Chains of layers that may be exchanged for one another: equal layers, fed and read by the same layers outside.
/// Each from its last layer to its first.
using TwinChains = std::vector<std::vector<int>>;

/// Groups of two or more such chains; no layer is in two of them.
std::vector<TwinChains> twin_chains(const Problem&);

}  // namespace stagecraft::graph
