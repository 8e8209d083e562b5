#pragma once

#include <functional>

#include "backends/cuda/repeat.hpp"

namespace stagecraft::cuda {

/// A run that is set up: who is told, and how one waits until all of it is over.
struct Stage {
  const Program& program;
  Yard& yard;
  Enqueuer& enqueuer;
  real::Session& session;
  Marks& marks;
  std::function<void(const std::function<void()>& enqueue)> play;
};

/// The whole program, call by call. `warm_up`: the first iteration is run beforehand, so that kernels are loaded,
/// algorithms chosen and memory taken before the clock runs.
Enqueued play_by_calls(const Stage&, bool warm_up);

/// Iteration by iteration, in graphs where they repeat. Beforehand two of them are run until they take no more memory,
/// and once more for the graphs.
Enqueued play_by_graphs(const Stage&, Repeater&, bool warm_up);

}  // namespace stagecraft::cuda
