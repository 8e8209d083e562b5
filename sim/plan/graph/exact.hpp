#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/plan/graph/problem.hpp"

namespace stagecraft::graph {

struct ExactOptions {
  bool sequential = false;       ///< Stages as a sequence instead of a graph.
  bool bottleneck = false;       ///< The least bottleneck instead of the shortest iteration.
  bool exchange_twins = true;    ///< Looks at chains that may be exchanged in one order alone; the result is the same.
  double incumbent = kInfinity;  ///< What is known to be possible.
  std::int64_t most_states = 20'000'000;
};

struct Exact {
  std::vector<Part> parts;  ///< Inputs before readers; a sequence: in its order.
  double value = 0;         ///< Seconds of an iteration, or of the bottleneck.
  std::int64_t states = 0;  ///< Stages and partial partitions that were looked at.
};

constexpr int kMostLayers = 256;

/// The best of all partitions into convex stages, any number of devices up to all. Label-setting over the sets of
/// layers that hold all readers of their layers: stages are laid from the end, and of a partial partition there
/// matters what it used, its slowest stage, its longest path, and for each layer next in line how deep and how long the
/// pipeline behind it is. Worse labels and those that cannot beat what is known are dropped. Nothing when memory
/// allows no partition as good as the incumbent; Infeasible beyond `most_states` or kMostLayers.
std::optional<Exact> search_exact(const Problem&, const ExactOptions&);

}  // namespace stagecraft::graph
