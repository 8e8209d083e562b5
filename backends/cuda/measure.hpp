#pragma once

#include "backends/backend.hpp"
#include "backends/cuda/gpu_runtime.hpp"

namespace stagecraft::cuda {

/// Measures what real::measure() does, by events: all virtual devices work at the same time, each with a copy of the
/// model, so that they share memory and clock as in a run. Layers also run on one part of a GPU alone.
Profile measure(const ProfileRequest&, const KernelMaker&);

}  // namespace stagecraft::cuda
