#pragma once

#include <string>
#include <vector>

#include "sim/core/dag.hpp"

namespace stagecraft::graph {

/// A set of layers: one alone, parts one after the other, or parts side by side.
struct Tree {
  enum class Kind { Layer, Series, Parallel };
  Kind kind = Kind::Layer;
  int layer = -1;
  std::vector<Tree> parts;
};

/// The layers of a tree, from left to right.
std::vector<int> layers_of(const Tree&);

/// Series-parallel decomposition of the partial order of a DAG (Valdes, Tarjan and Lawler, SIAM J. Comput. 11, 1982).
/// An edge that a longer path implies changes nothing. What is neither one after the other nor side by side is cut
/// into two halves after some layer depth, as if the first half were to end before the second begins: the cut that
/// orders the fewest pairs of layers that have none. `added` counts those pairs; 0: the graph is series-parallel.
struct Decomposition {
  Tree tree;
  long added = 0;
};
Decomposition decompose(const Digraph&);

}  // namespace stagecraft::graph
