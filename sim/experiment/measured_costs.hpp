#pragma once

#include "sim/experiment/run.hpp"

namespace stagecraft {

/// The experiment with the time of each computation as a real run measured it; messages and collectives keep their
/// costs. A measured time has in it what the computation waited for a core or for memory that others used, so in this
/// experiment computations share neither.
CompiledExperiment with_measured_times(CompiledExperiment, const Timeline& measured);

}  // namespace stagecraft
