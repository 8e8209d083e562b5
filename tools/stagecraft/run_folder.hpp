#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/output.hpp"
#include "sim/diagnosis/diagnose.hpp"
#include "sim/experiment/kept_run.hpp"
#include "sim/experiment/run.hpp"
#include "sim/output/trace.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft {

/// A file of a run, which is made when it is written.
struct RunFile {
  std::string name;
  std::function<std::string()> text;
};

/// Before anything runs: makes the folder of `run --out`. InputError where check_output() refuses a file of a run.
void make_run_folder(const std::string& folder, Overwrite);

/// Puts `files` in the place of those that an earlier run wrote there, all together; the last is results.json.
void write_run(const std::string& folder, const std::vector<RunFile>& files, Overwrite);

/// Adds the interval of predicted times to a report, unless the run was measured.
void add_interval(const CompiledExperiment&, Outcome&);

/// Adds what limits a simulated run of the scenario `file` with `sets`, on the backend that it ran on.
void add_diagnosis(CompiledExperiment&, Outcome&, const std::string& file, const std::vector<std::string>& sets,
                   WhatIf = WhatIf::First);

/// What `run --out` wrote into a folder; InputError when something of it is not there.
KeptRun read_kept_run(const std::string& folder);

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
