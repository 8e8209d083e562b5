#pragma once

#include <vector>

#include "sim/planners/graph/problem.hpp"

namespace stagecraft::graph {

/// A problem of blocks, each a chain of layers.
struct Coarse {
  GraphProblem problem;
  std::vector<std::vector<int>> layers;  ///< Layers of each block.
};

/// Greedy: fuses neighbors in chains, the fastest pair first and equally fast pairs at once, until at most `blocks`
/// remain or no chain is longer than one.
Coarse fuse_chains(const GraphProblem&, int blocks);

/// Parts of blocks as parts of layers.
std::vector<GraphStage> in_layers(const Coarse&, std::vector<GraphStage>);

/// Chains of layers that may be exchanged for one another: equal layers, fed and read by the same layers outside. Each
/// chain is listed from its last layer to its first.
using TwinChains = std::vector<std::vector<int>>;

/// Groups of two or more exchangeable chains; no layer is in two groups.
std::vector<TwinChains> twin_chains(const GraphProblem&);

}  // namespace stagecraft::graph
