#pragma once

#include "backends/cuda/held.hpp"
#include "backends/cuda/ranks/crew.hpp"
#include "backends/cuda/run.hpp"
#include "backends/real/dealing.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft::cuda {

constexpr double kMostPatience = 300;  ///< Seconds for what is not part of the program, as evaluations.

/// Of the instructions that are here, on the clock of the machine: each GPU has one of its own, which was read right
/// before the run. Not `timed`: as read_iteration_ends() gives them, still to be spread when all processes are known.
real::Times times_of(const Program&, const real::Dealing&, const Held&, bool timed);

/// The part of this process in a run, while others do theirs; the whole timeline is on the first of them. `perform`
/// plays the program, and reads the anchors of what is held right before the gates.
Timeline run_together(const Program&, const real::Dealing&, Held&, const Options&,
                      const std::function<void(Crew&)>& perform);

}  // namespace stagecraft::cuda
