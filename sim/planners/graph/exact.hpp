#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/planners/graph/problem.hpp"

// The search of the planner `graph-exact`: the shortest iteration over all convex partitions of a graph of layers.

namespace stagecraft::graph {

struct ExactOptions {
  bool sequential = false;       ///< Stages form a sequence instead of a graph.
  bool bottleneck = false;       ///< Minimizes the bottleneck instead of the iteration.
  bool exchange_twins = true;    ///< Tries exchangeable chains in only one order; the result is the same.
  double incumbent = kInfinity;  ///< Seconds that are known to be possible.
  std::int64_t most_states = 20'000'000;
};

constexpr int kMostLayers = 256;

/// The best of all partitions into convex stages on any number of devices up to all. Label-setting over the sets of
/// layers that contain all readers of their layers: stages are placed from the end, and a label has the devices used,
/// the slowest stage, the longest path, and for each next layer the depth and the length of the pipeline after it.
/// Dominated labels and labels that cannot beat the incumbent are dropped. Nothing when memory allows no partition as
/// good as the incumbent; Infeasible beyond `most_states` or kMostLayers.
std::optional<Partition> search_exact(const GraphProblem&, const ExactOptions&);

}  // namespace stagecraft::graph
