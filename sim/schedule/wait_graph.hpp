#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/dag.hpp"

namespace stagecraft {

/// Wait-for graph: which node waits for which, and why.
class WaitGraph {
 public:
  explicit WaitGraph(int nodes) : graph_(nodes) {}

  int size() const { return graph_.size(); }
  /// Adds a wait. Between two nodes the first reason is kept.
  void add(int from, int to, std::string reason);

  /// A node of a cycle, and why it waits for the next one.
  struct Wait {
    int node;
    std::string reason;
  };
  /// A shortest cycle, in order. There must be one.
  std::vector<Wait> shortest_cycle() const;

 private:
  Digraph graph_;
  std::map<std::pair<int, int>, std::string> reasons_;
};

/// The reasons of a cycle in one line.
std::string joined_reasons(const std::vector<WaitGraph::Wait>&);

}  // namespace stagecraft
