#pragma once

#include <string>

#include "tools/stagecraft/command.hpp"

namespace stagecraft {

// What `stagecraft import` writes of measured runs. Notes go to stderr. Files may be compressed by gzip.

/// A model with measured times from a trace of PyTorch's profiler; with --overlap, busy times of its streams.
std::string import_kineto(const Arguments&);
/// A model, or busy times, from an export of Nsight Systems.
std::string import_nsight(const Arguments&);
/// A model with the times that Megatron-LM's simulation of a pipeline measured for its chunks.
std::string import_megatron_timing(const Arguments&);
/// The spans of a trace that `stagecraft run` wrote.
std::string import_trace(const Arguments&);

}  // namespace stagecraft
