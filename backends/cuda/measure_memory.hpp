#pragma once

#include "backends/cuda/queue_kernels.hpp"
#include "sim/cost/profile.hpp"

namespace stagecraft::cuda {

/// Of one GPU that is divided: its multiprocessors, and what its memory reads and writes for one part while the others
/// rest and for all at once, while they add long rows of numbers.
MeasuredGpu measure_gpu(Yard&);

}  // namespace stagecraft::cuda
