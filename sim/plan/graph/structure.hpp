#pragma once

#include <string>
#include <vector>

#include "sim/core/dag.hpp"
#include "sim/plan/graph/problem.hpp"

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

/// Parts side by side and what follows them, where a stage may take what follows, the end of one of them, and some of
/// the others as a whole: the layer that joins branches needs no device of its own.
struct Join {
  int part = 0;     ///< Those side by side, among the parts in series.
  int branch = -1;  ///< The kind of the one that is cut.
  int others = -1;  ///< The kind of all the others, side by side.
  /// [parts that follow - 1][others as a whole, from the end][parts of the branch, from the end, - 1]
  std::vector<std::vector<std::vector<Sums>>> stages;
};

/// A kind of series-parallel part: parts of one kind cost the same in every division, so one search serves them all.
struct PartKind {
  Tree::Kind kind = Tree::Kind::Layer;
  std::vector<int> parts;                ///< Kinds of what it is made of; a layer is made of itself.
  std::vector<std::vector<Sums>> range;  ///< [first][count - 1]: of that many neighbouring parts as one stage.
  std::vector<double> work;              ///< Least device seconds of the first parts, from none on.
  std::vector<Join> joins;
};

/// A series-parallel part of the layers.
struct PartNode {
  int kind = -1;
  std::vector<int> layers;
  std::vector<PartNode> parts;  ///< Side by side: ordered by kind.
};

/// A part side by side with others: the first of a kind, and all the others.
struct Fork {
  PartNode branch, others;
};
Fork apart(const PartNode& side_by_side, const Join&);
/// Layers of some of its parts; of a layer, itself.
std::vector<int> layers_of(const PartNode&, std::size_t first, std::size_t last);

struct Structure {
  std::vector<PartKind> kinds;
  PartNode root;
};

/// Finds the kinds. Two parts are of one kind when their layers cost the same and read the same from within and from
/// outside, layer by layer.
Structure structure_of(const Problem&, const Tree&);

}  // namespace stagecraft::graph
