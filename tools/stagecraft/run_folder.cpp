// Writes and reads the folder of a run, whose results.json comes last and marks it as complete, and adds interval and
// diagnosis to a report; `run`, `report`, `compare` and `serve` share it.

#include "tools/stagecraft/run_folder.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/published/error_classes.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"

namespace stagecraft {
namespace {

/// What a run may write. results.json takes its place last: where it is, all of a run is.
const std::string kFiles[] = {"results.json",  "scenario.yaml", "spans.csv",   "memory.csv", "trace.json",
                              "trace.json.gz", "timeline.svg",  "report.html", "losses.csv"};

}  // namespace

void make_run_folder(const std::string& folder, Overwrite overwrite) {
  make_folder(folder);
  for (const std::string& name : kFiles) check_listed(folder, name, overwrite);
}

void write_run(const std::string& folder, const std::vector<RunFile>& files, Overwrite overwrite) {
  make_run_folder(folder, overwrite);
  std::error_code error;
  const bool has_run = std::filesystem::exists(folder + "/results.json", error);
  if (has_run) on_interrupt_say(fmt::format("'{}' has the run before", folder));
  FolderUpdate update(folder, overwrite);
  for (const RunFile& file : files) update.add(file.name, file.text());
  on_interrupt_say(fmt::format("{}'{}' has a whole run only if it has a results.json",
                               has_run ? "the run before was being replaced: " : "", folder));
  update.commit(kFiles);
  on_interrupt_say(fmt::format("the run in '{}' is whole", folder));
}

namespace {

std::string kept_file(const std::string& folder, const std::string& name, const std::string& help) {
  std::error_code error;
  if (!std::filesystem::exists(folder + "/" + name, error))
    throw InputError({{{folder, 0, 0}, {}, fmt::format("there is no {} here", name), help, "unreadable-file"}});
  return read_file(folder + "/" + name);
}

}  // namespace

void add_interval(const CompiledExperiment& c, Outcome& o) {
  if (o.timeline.clock == Clock::Simulated) o.report.interval = prediction_interval(c.experiment);
}

void add_diagnosis(CompiledExperiment& c, Outcome& o, const std::string& file, const std::vector<std::string>& sets,
                   WhatIf what_if) {
  o.report.diagnosis =
      diagnose(c, o, o.timeline.provenance.backend, scenario_reader(file, sets, c.experiment), what_if);
}

KeptRun read_kept_run(const std::string& folder) {
  const std::string help = "give the folder that stagecraft run --out wrote";
  KeptRun run{folder,
              kept_file(folder, "results.json", help),
              kept_file(folder, "spans.csv", "run the scenario again with --set report.spans=true"),
              {},
              kept_file(folder, "scenario.yaml", help)};
  std::error_code error;
  if (std::filesystem::exists(folder + "/memory.csv", error)) run.memory = read_file(folder + "/memory.csv");
  return run;
}

}  // namespace stagecraft
