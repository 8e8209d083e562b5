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

/// What PipeEdge's three files say of --model becomes a folder --out: model.yaml, cluster.yaml and scenario.yaml for
/// the planner `edgepipe`, and schedule.yml, the best plan as PipeEdge's runtime reads it. Doubts about the files go to
/// stderr. Returns the exit code.
int import_pipeedge(const Arguments&);

/// `stagecraft export simgrid-xml` and `stagecraft import simgrid-xml`.
int export_simgrid(const Arguments&);
std::string import_simgrid(const Arguments&);

}  // namespace stagecraft
