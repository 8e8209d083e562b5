// Topological order, depths and the shortest cycle of a directed graph.

#include "sim/core/dag.hpp"

#include <algorithm>
#include <functional>
#include <queue>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

// Follows `came_from` back from `last` to `start`.
std::vector<int> walk_back(const std::vector<int>& came_from, int start, int last) {
  std::vector<int> nodes;
  for (int node = last; node != start; node = came_from[node]) nodes.push_back(node);
  nodes.push_back(start);
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

// Nodes on a cycle, or on a path from one cycle to another: a shortest cycle uses only such nodes.
class BetweenCycles {
 public:
  explicit BetweenCycles(const Digraph& graph) : graph_(&graph), has_(graph.size(), 1) {
    for (int node = 0; node < graph.size(); ++node) {
      into_.push_back(static_cast<int>(graph.previous[node].size()));
      out_.push_back(static_cast<int>(graph.next[node].size()));
    }
    for (int node = 0; node < graph.size(); ++node)
      if (has(node) && (into_[node] == 0 || out_[node] == 0)) drop(node);
  }
  bool has(int node) const { return has_[node] != 0; }

  /// Takes a node out, and with it those that only it kept.
  void drop(int node) {
    std::vector<int> dropped{node};
    has_[node] = 0;
    const auto leave = [&](int other, int& left) {
      if (--left > 0 || !has(other)) return;
      has_[other] = 0;
      dropped.push_back(other);
    };
    while (!dropped.empty()) {
      const int gone = dropped.back();
      dropped.pop_back();
      for (const int other : graph_->next[gone]) leave(other, into_[other]);
      for (const int other : graph_->previous[gone]) leave(other, out_[other]);
    }
  }

 private:
  const Digraph* graph_;
  std::vector<char> has_;
  std::vector<int> into_, out_;  ///< Edges from and to those that are left.
};

}  // namespace

void Digraph::add(int from, int to) {
  STAGECRAFT_CHECK(from >= 0 && from < size() && to >= 0 && to < size());
  auto& out = next[from];
  auto& in = previous[to];
  const bool exists = out.size() < in.size() ? std::find(out.begin(), out.end(), to) != out.end()
                                             : std::find(in.begin(), in.end(), from) != in.end();
  if (exists) return;
  out.push_back(to);
  in.push_back(from);
}

std::optional<std::vector<int>> topological_order(const Digraph& graph) {
  std::vector<int> waiting(graph.size());
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int node = 0; node < graph.size(); ++node) {
    waiting[node] = static_cast<int>(graph.previous[node].size());
    if (waiting[node] == 0) ready.push(node);
  }
  std::vector<int> order;
  order.reserve(waiting.size());
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const int other : graph.next[node])
      if (--waiting[other] == 0) ready.push(other);
  }
  if (order.size() != waiting.size()) return {};
  return order;
}

std::vector<int> depth_to_sink(const Digraph& graph) { return depth_to_sink(graph, std::vector<int>(graph.size(), 1)); }

std::vector<int> depth_to_sink(const Digraph& graph, const std::vector<int>& weights) {
  const auto order = topological_order(graph);
  STAGECRAFT_CHECK(order.has_value());
  std::vector<int> depth = weights;
  for (auto node = order->rbegin(); node != order->rend(); ++node)
    for (const int other : graph.next[*node]) depth[*node] = std::max(depth[*node], depth[other] + weights[*node]);
  return depth;
}

// A breadth-first search from every node that may lie on a cycle, pruned where it cannot beat the best cycle. All
// cycles through an earlier start node are known, so that node is removed.
std::vector<int> shortest_cycle(const Digraph& graph) {
  BetweenCycles useful(graph);
  std::vector<int> best, came_from(graph.size()), seen_from(graph.size(), -1), layer, next_layer;
  for (int start = 0; start < graph.size(); ++start) {
    if (!useful.has(start)) continue;
    layer = {start};
    bool closed = false;
    for (std::size_t length = 1; !layer.empty() && !closed && (best.empty() || length < best.size()); ++length) {
      next_layer.clear();
      for (const int node : layer) {
        for (const int other : graph.next[node]) {
          if (other == start && !closed) best = walk_back(came_from, start, node), closed = true;
          if (other == start || !useful.has(other) || seen_from[other] == start) continue;
          seen_from[other] = start;
          came_from[other] = node;
          next_layer.push_back(other);
        }
      }
      layer.swap(next_layer);
    }
    useful.drop(start);
  }
  return best;
}

}  // namespace stagecraft
