#pragma once

#include "sim/experiment/run.hpp"

namespace stagecraft {

/// The experiment on a machine with fewer cores than devices: each device is a thread, and of m threads that compute at
/// the same time each runs at min(1, cores / m) of its speed, as a fair scheduler of an operating system shares cores.
/// Simulators that share links (fluid, simgrid) play it: the cores are a link that each op uses at one core at most.
/// Messages take no core. InternalError if devices share a memory already.
CompiledExperiment on_shared_cores(CompiledExperiment, int cores);

}  // namespace stagecraft
