#pragma once

#include <string>
#include <vector>

#include "sim/core/dag.hpp"
#include "sim/planners/graph/problem.hpp"

namespace stagecraft::graph {

/// A set of layers: one layer, parts in series, or parallel parts.
struct Tree {
  enum class Kind { Layer, Series, Parallel };
  Kind kind = Kind::Layer;
  int layer = -1;
  std::vector<Tree> parts;
};

/// The layers of a tree, from left to right.
std::vector<int> layers_of(const Tree&);

/// Series-parallel decomposition of the partial order of a DAG (Valdes, Tarjan and Lawler, SIAM J. Comput. 11, 1982).
/// An edge that a longer path implies changes nothing. A part that is neither serial nor parallel is cut into two
/// halves after some layer depth, as if the first half ended before the second begins: at the depth that orders the
/// fewest pairs of unordered layers. `added` counts these pairs; 0: the graph is series-parallel.
struct Decomposition {
  Tree tree;
  long added = 0;
};
Decomposition decompose(const Digraph&);

/// Parallel branches and the parts that follow them, where one stage may take parts that follow, the end of one branch
/// and some other branches as a whole: the layer that joins branches then needs no separate device.
struct Join {
  int part = 0;     ///< Index of the parallel branches among the parts in series.
  int branch = -1;  ///< Kind of the branch that is cut.
  int others = -1;  ///< Kind of all other branches in parallel.
  /// [parts that follow - 1][others as a whole, from the end][parts of the branch, from the end, - 1]
  std::vector<std::vector<std::vector<Sums>>> stages;
};

/// A kind of series-parallel part: parts of one kind cost the same in every division, so one search serves them all.
struct PartKind {
  Tree::Kind kind = Tree::Kind::Layer;
  std::vector<int> parts;                ///< Kinds of its parts; a layer is its own part.
  std::vector<std::vector<Sums>> range;  ///< [first][count - 1]: amounts of `count` neighboring parts as one stage.
  std::vector<double> work;              ///< [count]: least device seconds of the first `count` parts.
  std::vector<Join> joins;
};

/// A series-parallel part of the layers.
struct PartNode {
  int kind = -1;
  std::vector<int> layers;
  std::vector<PartNode> parts;  ///< Parallel parts are sorted by kind.
};

/// Parallel parts divided into the first branch of a kind and all others.
struct Fork {
  PartNode branch, others;
};
Fork apart(const PartNode& side_by_side, const Join&);
/// Layers of the parts first..last-1 of a node; a node that is a layer is its own part.
std::vector<int> layers_of(const PartNode&, std::size_t first, std::size_t last);

struct Structure {
  std::vector<PartKind> kinds;
  PartNode root;
};

/// Finds the kinds. Two parts are of one kind when their layers cost the same and read the same from within and from
/// outside, layer by layer.
Structure structure_of(const GraphProblem&, const Tree&);

}  // namespace stagecraft::graph
