#pragma once

#include "backends/cuda/held.hpp"
#include "backends/cuda/ranks/crew.hpp"
#include "backends/cuda/run.hpp"
#include "backends/real/dealing.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft::cuda {

constexpr double kMostPatience = 300;  ///< Seconds for what is not part of the program, as evaluations.

/// The part of this process in a run, while others do theirs; the whole timeline is on the first of them. `perform`
/// plays the program, and reads the anchors of what is held right before the gates.
Timeline run_together(const Program&, const real::Dealing&, Held&, const Options&,
                      const std::function<void(Crew&)>& perform);

}  // namespace stagecraft::cuda
