#pragma once

#include <cstddef>
#include <optional>

#include "sim/experiment/run.hpp"
#include "sim/output/trace.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/run_folder.hpp"

namespace stagecraft {

/// --micro-batches of `run`: which micro-batches a trace has.
Argument trace_range_argument();

/// Before anything runs: InputError where the options of traces are wrong, or the build cannot compress.
void check_trace_options(const Arguments&);

/// Writes the trace to the file of --trace, compressed where its name ends in .gz.
void write_trace(const Arguments&, const CompiledExperiment&, const Outcome&);

/// The trace of a run folder: trace.json, or trace.json.gz of a large run. Above a million instructions it has the
/// first micro-batches unless --micro-batches chooses, and a note says so.
RunFile trace_file(const Arguments&, const CompiledExperiment&, const Outcome&);

}  // namespace stagecraft
