#pragma once

#include <vector>

#include "sim/plan/graph/problem.hpp"

namespace stagecraft::graph {

/// A problem of blocks, each a chain of layers.
struct Coarse {
  Problem problem;
  std::vector<std::vector<int>> layers;  ///< Of each block.
};

/// Fuses neighbours in chains, those that are fastest together first and all that are equally fast at once, until at
/// most so many blocks are left or no chain is longer than one.
Coarse fuse_chains(const Problem&, int blocks);

/// Parts of blocks as parts of layers.
std::vector<Part> in_layers(const Coarse&, std::vector<Part>);

/// Chains of layers that may be exchanged for one another: equal layers, fed and read by the same layers outside.
/// Each from its last layer to its first.
using TwinChains = std::vector<std::vector<int>>;

/// Groups of two or more such chains; no layer is in two of them.
std::vector<TwinChains> twin_chains(const Problem&);

}  // namespace stagecraft::graph
