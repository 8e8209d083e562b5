#include "tools/stagecraft/kept_run.hpp"

#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/report/files.hpp"
#include "sim/report/json.hpp"

namespace stagecraft {
namespace {

std::string kept_file(const std::string& folder, const std::string& name, const std::string& help) {
  std::error_code error;
  if (!std::filesystem::exists(folder + "/" + name, error))
    throw InputError({{{folder, 0, 0}, {}, fmt::format("there is no {} here", name), help, "unreadable-file"}});
  return read_file(folder + "/" + name);
}

}  // namespace

std::string results_of(const Scenario& s, const Prepared& p, const Outcome& o) {
  std::set<DeviceId> devices;
  for (const Stage& stage : p.plan.stages) devices.insert(stage.devices.begin(), stage.devices.end());
  const config::Value& plan = s.tree.at("plan");
  const RunSetup setup{.scenario_file = s.tree.where.file,
                       .model = p.model.name,
                       .cluster = p.cluster.name,
                       .schedule = s.schedule,
                       .planner = plan.is_map() ? plan.at("planner").text : plan.text,
                       .weights = s.weights,
                       .stages = p.plan.different_stages(),
                       .devices = static_cast<int>(devices.size()),
                       .micro_batches = s.micro_batches};
  return results_json(s.title, p.program, o.timeline, o.report, p.cluster, p.schedule.search, setup);
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

KeptRun kept_run(const std::string& name, const Scenario& s, const Prepared& p, const Outcome& o) {
  return {name, results_of(s, p, o), spans_csv(p.program, o.timeline, o.report, p.cluster),
          memory_csv(p.program, o.timeline, o.report, p.cluster), config::to_yaml(s.tree, true)};
}

}  // namespace stagecraft
