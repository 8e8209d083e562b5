#pragma once

#include "backends/backend.hpp"
#include "backends/cuda/gpu_runtime.hpp"
#include "backends/cuda/messages.hpp"

// One run of a Program on the GPUs of this process.

namespace stagecraft::cuda {

struct Options {
  GpuOptions gpu;
  double timeout = 30;            ///< Seconds without anything that ends, after which a run is stuck.
  bool one_thread = false;        ///< A run for its losses: when they grow beyond all bounds it ends there.
  bool warm_up = true;            ///< The first iteration is run beforehand, and its results are dropped.
  CopyKernel copy_kernel = {};    ///< For messages by a kernel.
  bool fills_new_memory = false;  ///< Fills new memory with NaNs, so that tests notice reads of unwritten memory.
};

/// Executes a program on GPUs: this thread enqueues all of it in the order of its numbers, with groups by one thread
/// of a device at a time, on a stream for each stream of the program; instructions wait for events. Times are read from
/// the events.
Timeline run(const Program&, const KernelMaker&, const Options&);

}  // namespace stagecraft::cuda
