#include "tools/stagecraft/kept_run.hpp"

#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/report/files.hpp"
#include "sim/report/json_files.hpp"

namespace stagecraft {
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
  for (const Stage& stage : c.plan.stages) devices.insert(stage.devices.begin(), stage.devices.end());
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
