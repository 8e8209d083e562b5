#include "tools/stagecraft/run_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/json.hpp"
#include "sim/core/text.hpp"
#include "sim/report/files.hpp"
#include "sim/report/json_files.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"

namespace stagecraft {
namespace {

/// What a run may write. results.json is the first to be removed and the last to be written: where it is, all of a run
/// is.
constexpr const char* kFiles[] = {"results.json", "scenario.yaml", "spans.csv",   "memory.csv",
                                  "trace.json",   "timeline.svg",  "report.html", "losses.csv"};

/// Lists the files that a run wrote there. It is written before those files, and stays when the run is interrupted.
constexpr const char* kList = ".stagecraft-run";
constexpr const char* kListIs = "# Files that stagecraft run --out wrote here; the next one replaces them.";

bool there(const std::string& file) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(file, error));
}

[[noreturn]] void refuse(const std::string& file) {
  throw InputError(fmt::format("--out: nothing says that a run wrote '{}', and one would replace it", file),
                   "name another folder, or move it");
}

/// Earlier versions wrote no list; their results.json says that the files are of a run.
std::vector<std::string> written_without_list(const std::string& results) {
  if (!there(results)) return {};
  const std::optional<Json> json = Json::parse(read_file(results));
  const Json* schema = json ? json->find("schema") : nullptr;
  if (!schema || *schema != "results/1") return {};
  std::vector<std::string> names(std::begin(kFiles), std::end(kFiles));
  if (!json->find("learnt")) std::erase(names, "losses.csv");
  return names;
}

/// What is there of a run before, in the order of kFiles.
std::vector<std::string> files_of_run(const std::string& folder) {
  const std::string list = folder + "/" + kList;
  const bool listed = there(list);
  const auto names = listed ? split(read_file(list), '\n') : written_without_list(folder + "/results.json");
  if (listed && names.front() != kListIs) refuse(list);
  std::vector<std::string> found;
  for (const std::string name : kFiles) {
    if (!there(folder + "/" + name)) continue;
    if (std::find(names.begin(), names.end(), name) == names.end()) refuse(folder + "/" + name);
    found.push_back(name);
  }
  return found;
}

void write_list(const std::string& folder, const std::vector<std::string>& names) {
  write_file(folder + "/" + kList, fmt::format("{}\n{}\n", kListIs, join(names, "\n")));
}

void remove_file(const std::string& file) {
  std::error_code error;
  std::filesystem::remove(file, error);
  if (error) throw BackendError(fmt::format("'{}' cannot be removed: {}", file, error.message()));
}

}  // namespace

void make_run_folder(const std::string& folder, const std::string& scenario_file) {
  const std::string scenario = folder + "/scenario.yaml";
  std::error_code error;
  if (std::filesystem::equivalent(scenario, scenario_file, error))
    throw InputError(fmt::format("--out: '{}' is what is run, and would be lost", scenario), "name another folder");
  files_of_run(folder);
  make_folder(folder);
}

void write_run(const std::string& folder, const std::vector<RunFile>& files) {
  const std::vector<std::string> before = files_of_run(folder);
  on_interrupt_say(fmt::format("{}'{}' has a whole run only if it has a results.json",
                               before.empty() ? "" : "the run before was being replaced: ", folder));
  write_list(folder, before);
  for (const std::string& name : before) remove_file(folder + "/" + name);
  std::vector<std::string> names;
  for (const RunFile& file : files) names.push_back(file.name);
  write_list(folder, names);
  for (const RunFile& file : files) write_file(folder + "/" + file.name, file.text());
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

std::string results_of(const CompiledExperiment& c, const Outcome& o) {
  const Experiment& e = c.experiment;
  std::set<DeviceId> devices;
  for (const Stage& stage : c.plan.stages) devices.insert(stage.devices().begin(), stage.devices().end());
  const RunSetup setup{.scenario_file = e.source->where.file,
                       .model = e.model->name,
                       .cluster = e.cluster->name,
                       .schedule = e.schedule.name(),
                       .planner = std::string(e.plan.planner->name),
                       .weights = e.weights.name(),
                       .stages = c.plan.different_stages(),
                       .devices = static_cast<int>(devices.size()),
                       .micro_batches = e.run.micro_batches};
  return results_json(e.title, c.program, o.timeline, o.report, c.cluster(), c.schedule.search, setup);
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

KeptRun kept_run(const std::string& name, const CompiledExperiment& c, const Outcome& o) {
  return {name, results_of(c, o), spans_csv(c.program, o.timeline, o.report, c.cluster()),
          memory_csv(c.program, o.timeline, o.report, c.cluster()), config::to_yaml(*c.experiment.source, true)};
}

}  // namespace stagecraft
