#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace stagecraft {

/// A directed graph over 0..nodes-1 with its edges in both directions.
struct Digraph {
  std::vector<std::vector<int>> next, previous;

  Digraph() = default;
  explicit Digraph(int nodes) : next(nodes), previous(nodes) {}
  int size() const { return static_cast<int>(next.size()); }
  void add(int from, int to);  ///< Ignores a second equal edge.
};

/// Smallest index first among the nodes whose predecessors are all placed, so that nodes numbered in topological
/// order stay in that order; nothing when there is a cycle. O(edges + nodes log nodes).
std::optional<std::vector<int>> topological_order(const Digraph&);

/// Number of nodes on the longest path from each node to a sink, itself included. Needs an acyclic graph.
std::vector<int> depth_to_sink(const Digraph&);
/// Largest sum of `weights` on a path from each node to a sink, itself included. Needs an acyclic graph.
std::vector<int> depth_to_sink(const Digraph&, const std::vector<int>& weights);

/// The nodes of a shortest cycle, in order; empty when there is none. O(nodes * edges): for error messages.
std::vector<int> shortest_cycle(const Digraph&);

}  // namespace stagecraft
