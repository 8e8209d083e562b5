// Writes the files of a run as text: what `run --out` stores, pages read and results.json says.

#include "sim/experiment/kept_run.hpp"

#include <vector>

#include "sim/experiment/own_orders.hpp"
#include "sim/experiment/packed_data.hpp"
#include "sim/output/files.hpp"
#include "sim/output/json_files.hpp"
#include "sim/plan/plan_words.hpp"

namespace stagecraft {

std::string results_of(const CompiledExperiment& c, const Outcome& o) {
  const Experiment& e = c.experiment;
  const std::vector<DeviceId> devices = devices_of(c.plan);
  const RunSetup setup{.scenario_file = e.source->where.file,
                       .model = e.model->name,
                       .cluster = e.cluster->name,
                       .schedule = schedule_title(e.schedule),
                       .planner = std::string(e.plan.planner->name),
                       .weights = e.weights.name(),
                       .plan = plan_line(c.plan, tokens_of_sample(*e.model)),
                       .stages = c.plan.different_stages(),
                       .devices = static_cast<int>(devices.size()),
                       .micro_batches = e.run.micro_batches};
  return results_json(e.title, c.program, o.timeline, o.report, c.cluster(), c.schedule.search, setup);
}

KeptRun kept_run(const std::string& name, const CompiledExperiment& c, const Outcome& o) {
  return {name, results_of(c, o), spans_csv(c.program, o.timeline, o.report, c.cluster()),
          memory_csv(c.program, o.timeline, o.report, c.cluster()), config::to_yaml(*c.experiment.source, true)};
}

}  // namespace stagecraft
