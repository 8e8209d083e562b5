#pragma once

#include "backends/backend.hpp"
#include "backends/cuda/gpu_runtime.hpp"
#include "backends/cuda/messages.hpp"

namespace stagecraft::cuda {

/// Measures what real::measure() does, by events: all virtual devices work at the same time, each with a copy of the
/// model or with its part of a group, so that they share memory and clock as in a run. Layers without groups also run
/// on one part of a GPU alone. Messages go the way that the options of the request name, as in a run.
Profile measure(const ProfileRequest&, const KernelMaker&, const CopyKernel&);

}  // namespace stagecraft::cuda
