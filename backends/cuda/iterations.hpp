#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace stagecraft::cuda {

/// The instructions of one iteration, in two parts: the body of a graph, and updates that follow it.
struct Iteration {
  std::vector<InstructionId> body, updates;
  std::int64_t updates_done = 0;  ///< The most updates of a stage up to its end.
  bool repeats = false;  ///< The body is the body of the iteration before, with later micro-batches and versions.
};

/// Splits a program into iterations. `updates_apart`: updates stay outside the graph, because weights are read after
/// them. The result is empty where iterations overlap, and why_not says so.
std::vector<Iteration> iterations_of(const Program&, bool updates_apart, std::string& why_not);

}  // namespace stagecraft::cuda
