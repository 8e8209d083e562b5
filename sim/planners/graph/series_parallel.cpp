// Divides a graph of layers into parts in series and parallel branches, for GraphPipe's algorithm.

#include "sim/planners/graph/structure.hpp"

#include <algorithm>
#include <numeric>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::graph {
namespace {

using LayerList = std::vector<int>;  ///< In topological order.

/// Which layer needs which, also by way of others.
class Order {
 public:
  explicit Order(const Digraph& graph) : before_(graph.size(), std::vector<bool>(graph.size(), false)) {
    const auto order = topological_order(graph);
    STAGECRAFT_CHECK(order.has_value());
    for (const int layer : *order)
      for (const int input : graph.previous[layer]) {
        before_[layer][input] = true;
        for (int i = 0; i < graph.size(); ++i)
          if (before_[input][i]) before_[layer][i] = true;
      }
  }
  bool before(int first, int second) const { return before_[second][first]; }
  bool ordered(int a, int b) const { return before(a, b) || before(b, a); }

 private:
  std::vector<std::vector<bool>> before_;  ///< [layer][one that it needs]
};

/// Groups of layers that no order joins, each in the order given.
std::vector<LayerList> side_by_side(const Order& order, const LayerList& layers) {
  std::vector<LayerList> groups;
  std::vector<bool> taken(layers.size(), false);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (taken[i]) continue;
    std::vector<std::size_t> component{i};
    taken[i] = true;
    for (std::size_t f = 0; f < component.size(); ++f)
      for (std::size_t j = 0; j < layers.size(); ++j)
        if (!taken[j] && order.ordered(layers[component[f]], layers[j])) taken[j] = true, component.push_back(j);
    std::sort(component.begin(), component.end());
    LayerList& group = groups.emplace_back();
    for (const std::size_t f : component) group.push_back(layers[f]);
  }
  return groups;
}

/// How many of `layers` each of them needs.
std::vector<int> needs_of(const Order& order, const LayerList& layers) {
  std::vector<int> needs(layers.size(), 0);
  for (std::size_t i = 0; i < layers.size(); ++i)
    for (const int other : layers) needs[i] += order.before(other, layers[i]);
  return needs;
}

/// Cuts wherever all later layers need all earlier ones. Sorted by the number of layers that each needs, the first k
/// layers precede such a cut when every other layer needs all k of them.
std::vector<LayerList> one_after_other(const Order& order, const LayerList& layers) {
  const std::vector<int> needs = needs_of(order, layers);
  std::vector<std::size_t> sorted(layers.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) { return needs[a] < needs[b]; });
  std::vector<LayerList> pieces(1);
  // common[k]: how many layers all of sorted[k..] need; k of them are sorted[..k) when no later one is among them.
  std::vector<std::size_t> common(sorted.size() + 1, 0);
  std::vector<bool> needed(layers.size(), true);
  for (std::size_t k = sorted.size(); k-- > 0;) {
    for (std::size_t i = 0; i < layers.size(); ++i)
      if (!order.before(layers[i], layers[sorted[k]])) needed[i] = false;
    common[k] = std::count(needed.begin(), needed.end(), true);
  }
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    if (k > 0 && common[k] == k) pieces.emplace_back();
    pieces.back().push_back(layers[sorted[k]]);
  }
  for (LayerList& piece : pieces) std::sort(piece.begin(), piece.end());
  return pieces;
}

class Builder {
 public:
  explicit Builder(const Digraph& graph) : order_(graph) {}

  Tree tree(const LayerList& layers) {
    if (layers.size() == 1) return {Tree::Kind::Layer, layers.front(), {}};
    if (const auto groups = side_by_side(order_, layers); groups.size() > 1) return join(Tree::Kind::Parallel, groups);
    if (const auto pieces = one_after_other(order_, layers); pieces.size() > 1) return join(Tree::Kind::Series, pieces);
    return join(Tree::Kind::Series, forced(layers));
  }
  long added() const { return added_; }

 private:
  Tree join(Tree::Kind kind, const std::vector<LayerList>& groups) {
    Tree result{kind, -1, {}};
    for (const LayerList& group : groups) {
      Tree part = tree(group);
      if (part.kind == kind)
        std::move(part.parts.begin(), part.parts.end(), std::back_inserter(result.parts));
      else
        result.parts.push_back(std::move(part));
    }
    return result;
  }

  /// The cut by depth that puts the fewest pairs in an order they do not have.
  std::vector<LayerList> forced(const LayerList& layers) {
    std::vector<int> depth(layers.size(), 0);
    for (std::size_t i = 0; i < layers.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (order_.before(layers[j], layers[i])) depth[i] = std::max(depth[i], depth[j] + 1);
    long fewest = -1;
    int best = 0;
    for (int last = 0; last < *std::max_element(depth.begin(), depth.end()); ++last) {
      long pairs = 0;
      for (std::size_t i = 0; i < layers.size(); ++i)
        for (std::size_t j = 0; j < layers.size(); ++j)
          pairs += depth[i] <= last && depth[j] > last && !order_.before(layers[i], layers[j]);
      if (fewest < 0 || pairs < fewest) fewest = pairs, best = last;
    }
    added_ += fewest;
    std::vector<LayerList> halves(2);
    for (std::size_t i = 0; i < layers.size(); ++i) halves[depth[i] > best].push_back(layers[i]);
    return halves;
  }

  Order order_;
  long added_ = 0;
};

void collect(const Tree& tree, std::vector<int>& layers) {
  if (tree.kind == Tree::Kind::Layer) layers.push_back(tree.layer);
  for (const Tree& part : tree.parts) collect(part, layers);
}

}  // namespace

std::vector<int> layers_of(const Tree& tree) {
  std::vector<int> layers;
  collect(tree, layers);
  return layers;
}

Decomposition decompose(const Digraph& graph) {
  LayerList layers(graph.size());
  std::iota(layers.begin(), layers.end(), 0);
  Builder builder(graph);
  Decomposition result;
  result.tree = builder.tree(layers);
  result.added = builder.added();
  return result;
}

}  // namespace stagecraft::graph
