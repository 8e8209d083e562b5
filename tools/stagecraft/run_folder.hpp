#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/core/output.hpp"
#include "sim/diagnosis/diagnose.hpp"
#include "sim/experiment/kept_run.hpp"

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
void add_diagnosis(const CompiledExperiment&, Outcome&, const std::string& file, const std::vector<std::string>& sets,
                   WhatIf = WhatIf::First);

/// What `run --out` wrote into a folder; InputError when something of it is not there.
KeptRun read_kept_run(const std::string& folder);

}  // namespace stagecraft
