#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/plan/graph/problem.hpp"

namespace stagecraft::graph {

struct Partition {
  std::vector<Part> parts;
  double bottleneck = 0;
  std::int64_t states = 0;  ///< Sub-problems that were solved.
};

/// GraphPipe's partitioner (Jeon et al., ASPLOS 2025, algorithm 1) for stages of one micro-batch size and k = 1: a
/// stage is a series-parallel part, or neighbouring ones, of the layers. Of the least bottleneck that fits into memory
/// it finds the stages whose first one has fewest micro-batches in flight, then those that need least memory. Binary
/// search among the times that stages can have; in each round a dynamic programme over parts, devices and stages behind
/// them, from the end. Parts that are alike share their solutions. Nothing when no stages fit; Infeasible beyond
/// `most_steps` looks at a sub-problem, solved or known, or kMostLayersInParts layers.
std::optional<Partition> partition(const Problem&, std::int64_t most_steps = std::numeric_limits<std::int64_t>::max());

constexpr int kMostLayersInParts = 1000;

}  // namespace stagecraft::graph
