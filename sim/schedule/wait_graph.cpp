// A graph of nodes that wait for each other, and the shortest cycle in it, which explains a deadlock.

#include "sim/schedule/wait_graph.hpp"

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

void WaitGraph::add(int from, int to, std::string reason) {
  graph_.add(from, to);
  reasons_.try_emplace({from, to}, std::move(reason));
}

std::vector<WaitGraph::Wait> WaitGraph::shortest_cycle() const {
  const std::vector<int> nodes = stagecraft::shortest_cycle(graph_);
  STAGECRAFT_CHECK(!nodes.empty());
  std::vector<Wait> cycle;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    cycle.push_back({nodes[i], reasons_.at({nodes[i], nodes[(i + 1) % nodes.size()]})});
  return cycle;
}

std::string joined_reasons(const std::vector<WaitGraph::Wait>& cycle) {
  std::string text;
  for (const WaitGraph::Wait& wait : cycle) text += (text.empty() ? "" : "; ") + wait.reason;
  return text;
}

}  // namespace stagecraft
