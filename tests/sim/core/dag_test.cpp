#include "sim/core/dag.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"

namespace stagecraft::dag_test {
namespace {

using Edges = std::vector<std::pair<int, int>>;

Digraph graph(int nodes, const Edges& edges) {
  Digraph result(nodes);
  for (const auto& edge : edges) result.add(edge.first, edge.second);
  return result;
}

bool is_cycle(const Digraph& g, const std::vector<int>& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& out = g.next[nodes[i]];
    if (std::find(out.begin(), out.end(), nodes[(i + 1) % nodes.size()]) == out.end()) return false;
  }
  return true;
}

// By powers of the adjacency matrix: independent of the search.
std::size_t girth(const Digraph& g) {
  const auto n = static_cast<std::size_t>(g.size());
  std::vector<std::vector<char>> reach(n, std::vector<char>(n, 0));
  for (std::size_t i = 0; i < n; ++i) reach[i][i] = 1;
  for (std::size_t length = 1; length <= n; ++length) {
    std::vector<std::vector<char>> further(n, std::vector<char>(n, 0));
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < n; ++k)
        if (reach[i][k])
          for (const int to : g.next[k]) further[i][to] = 1;
    reach = further;
    for (std::size_t i = 0; i < n; ++i)
      if (reach[i][i]) return length;
  }
  return 0;
}

}  // namespace

TEST_CASE("equal edges are kept once") {
  const Digraph g = graph(2, {{0, 1}, {0, 1}});
  CHECK(g.next[0] == std::vector<int>{1});
  CHECK(g.previous[1] == std::vector<int>{0});
  Digraph small(1);
  CHECK_THROWS_AS(small.add(0, 1), InternalError);
}

TEST_CASE("topological order keeps a topological numbering and takes the smallest index first") {
  CHECK(topological_order(graph(4, {{0, 1}, {1, 2}})) == std::vector<int>{0, 1, 2, 3});
  CHECK(topological_order(graph(4, {{3, 1}, {2, 1}, {1, 0}})) == std::vector<int>{2, 3, 1, 0});
  CHECK(topological_order(graph(2, {{0, 1}, {1, 0}})) == std::nullopt);
  CHECK(topological_order(Digraph{}) == std::vector<int>{});
}

TEST_CASE("depth counts the nodes to a sink") {
  CHECK(depth_to_sink(graph(5, {{0, 1}, {1, 2}, {0, 2}, {3, 2}})) == std::vector<int>{3, 2, 1, 2, 1});
  CHECK_THROWS_AS(depth_to_sink(graph(1, {{0, 0}})), InternalError);
}

TEST_CASE("the shortest cycle is found, whatever surrounds it") {
  CHECK(shortest_cycle(graph(3, {{0, 1}, {1, 2}})).empty());
  CHECK(shortest_cycle(graph(2, {{0, 1}, {1, 1}})) == std::vector<int>{1});
  CHECK(shortest_cycle(graph(6, {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}, {4, 3}, {4, 5}})) == std::vector<int>{3, 4});
}

// A search from every node of it would take minutes.
TEST_CASE("a cycle through a hundred thousand nodes is found as fast as it is walked") {
  constexpr int kNodes = 100000;
  Digraph ring(kNodes);
  for (int node = 0; node < kNodes; ++node) ring.add(node, (node + 1) % kNodes);
  CHECK(shortest_cycle(ring).size() == kNodes);
}

TEST_CASE("random graphs: order and cycle agree with their definitions") {
  Rng random(1, "dag_test");
  for (int round = 0; round < 300; ++round) {
    const int nodes = random.integer(1, 9);
    Digraph g(nodes);
    for (int edge = random.integer(0, 2 * nodes); edge > 0; --edge)
      g.add(random.integer(0, nodes - 1), random.integer(0, nodes - 1));
    const auto cycle = shortest_cycle(g);
    CHECK(topological_order(g).has_value() == cycle.empty());
    CHECK(cycle.size() == girth(g));
    CHECK(is_cycle(g, cycle));
  }
}

}  // namespace stagecraft::dag_test
