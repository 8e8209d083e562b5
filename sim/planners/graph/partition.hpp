#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/planners/graph/problem.hpp"

// GraphPipe's algorithm: the stages with the least time of the slowest one, on the decomposition of the graph.

namespace stagecraft::graph {

/// GraphPipe's partitioner (Jeon et al., ASPLOS 2025, algorithm 1) for stages of one micro-batch size and k = 1: a
/// stage is a series-parallel part, or neighboring parts, of the layers. With the least bottleneck that fits into
/// memory it minimizes the micro-batches in flight of the first stage, then the memory. It runs a binary search among
/// the times that stages can have; each round is a dynamic program over parts, devices and stages after them, from the
/// end. Equal parts share their solutions. Nothing when no stages fit; Infeasible beyond `most_steps` visits of
/// subproblems, solved or known, or kMostLayersInParts layers.
std::optional<Partition> partition(const GraphProblem&,
                                   std::int64_t most_steps = std::numeric_limits<std::int64_t>::max());

constexpr int kMostLayersInParts = 1000;

}  // namespace stagecraft::graph
